"""Dataclasses to parts and back: with all of their fields, or not at all."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from inspect import getattr_static
from types import MemberDescriptorType
from typing import Any

from callboard.remote.errors import CodecError


class DataclassParts:
    """How the objects of one dataclass are taken apart, and made again.

    The parts are the fields that the constructor takes, in order. If there are others, a dict of
    those that have a value follows: they are set when the object is made. Without it, as from
    releases before, they are what the constructor makes them.
    """

    def __init__(self, cls: type, exactly: bool) -> None:
        """`exactly` says that the constructor's fields are set, too, in case that it changes them.

        This is for bytes of our own: for others' the constructor may have to check values.
        """
        fields = dataclasses.fields(cls)
        self.cls = cls
        self.exactly = exactly
        self.given = [field.name for field in fields if field.init]
        self.late = [field.name for field in fields if not field.init]
        # A value needs nothing that Generic sets.
        self.known = {"__orig_class__", *self.given, *self.late}
        self.slots = [
            name
            for each in cls.__mro__
            if "__slots__" in vars(each)  # not those of built-in bases, such as Exception
            for name, found in vars(each).items()
            if type(found) is MemberDescriptorType and name not in self.known
        ]

    def parts(self, value: Any) -> list[Any]:
        """Take an object apart. Raises CodecError if it has attributes that are no fields."""
        if self.slots or not self.known.issuperset(getattr(value, "__dict__", ())):
            self._refuse_others(value)
        parts = [getattr(value, name) for name in self.given]
        if self.late:
            parts.append({name: getattr(value, name) for name in self.late if hasattr(value, name)})
        return parts

    def make(self, *parts: Any) -> Any:
        """Make an object of its parts. Raises CodecError, and what the constructor raises."""
        late: Any = {}
        if self.late and len(parts) == len(self.given) + 1:
            *parts, late = parts  # type: ignore[assignment]
        if type(late) is not dict or not late.keys() <= {*self.late}:
            raise CodecError(f"these are no fields of a {self.cls.__qualname__}: {late!r:.100}")
        given = dict(zip(self.given, parts, strict=True))
        made = self.cls(**given)
        for name, value in (given | late if self.exactly else late).items():
            object.__setattr__(made, name, value)  # it may be frozen
        return made

    def _refuse_others(self, value: Any) -> None:
        others = [
            name
            for name in getattr(value, "__dict__", ())
            if name not in self.known
            and not isinstance(getattr_static(self.cls, name, None), cached_property)
        ]
        others += [name for name in self.slots if hasattr(value, name)]
        if others:
            raise CodecError(
                f"a {self.cls.__qualname__} has attributes that are no fields, and would be lost: "
                f"{', '.join(others)}. Declare them, as by field(init=False)"
            )
