"""The base of handles: a copy is the handle itself, and `dir()` shows public names only."""

from __future__ import annotations

from typing import Any, Self


def public_names(thing: object) -> list[str]:
    """Return the names of an object's public attributes, as the `__dir__` of callboard's classes.

    A user's subclass keeps the names that it adds.
    """
    ours = [cls for cls in type(thing).__mro__ if cls.__module__.partition(".")[0] == "callboard"]
    inside = {name for cls in ours for name in vars(cls)}
    is_ours = type(thing) in ours
    return [
        name
        for name in object.__dir__(thing)
        if not name.startswith(("_", "__pyx_"))
        or (name.startswith("__") and name.endswith("__") and "__pyx_" not in name)
        or not (is_ours or name in inside or name.startswith("_callboard_"))
    ]


class CopiedAsItself:
    """The base of handles: a copy of a handle, shallow or deep, is the handle itself."""

    __slots__ = ()
    __dir__ = public_names

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self
