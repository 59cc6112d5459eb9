"""Encodes and decodes values by msgpack, never by pickle. This is version 1 of the encoding.

msgpack's own types carry None, bool, int of 64 bits, float, str, bytes, list and dict. Everything
else is an extension, by number:

    1  tuple       an array of the items            7  time        ISO 8601, in ASCII
    2  set         the same                         8  timedelta   days, seconds, microseconds
    3  frozenset   the same                         9  Decimal     as str() writes it
    4  int         two's complement, big endian    10  UUID        16 bytes
    5  datetime    ISO 8601, in ASCII              11  dataclass   an array: name, `DataclassParts`
    6  date        the same                        12  Enum        an array: name, member
    13 datetime    with a fold or a named zone     14  time        the same

A time keeps its `fold` and, if that is a `ZoneInfo`, its zone by name, as `times` has it; other
zones arrive as offsets. Bytearrays and memoryviews arrive as bytes. Types must fit exactly: an
instance of a subclass is encoded only if its own class was registered. A timestamp of msgpack's own
arrives as a datetime in UTC.
"""

from __future__ import annotations

import dataclasses
import enum
import sys
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import cached_property
from inspect import getattr_static
from struct import Struct
from types import MemberDescriptorType
from typing import Any
from uuid import UUID

import msgpack

from callboard.core.errors import ConfigError
from callboard.core.handles import public_names
from callboard.core.interrupts import comes_from_signal
from callboard.core.text import safe_repr, safe_str
from callboard.remote.errors import CodecError
from callboard.remote.wire import times
from callboard.remote.wire.packed_rows import columns_of
from callboard.remote.wire.unpacking import DEEPEST as DEEPEST
from callboard.remote.wire.unpacking import Unpacking

_BEFORE_ROWS = 64  # bytes of a frame that are no rows, and more


class DataclassParts:
    """The conversion of a dataclass's objects to their fields' values, and back.

    The parts are the fields that the constructor takes, in order. If there are others, a dict of
    those with a value follows, which are set when the object is made. Without it, as from earlier
    releases, the constructor decides about them.
    """

    def __init__(self, cls: type, exactly: bool) -> None:
        """With `exactly` the constructor's fields are set, too, in case that it changes them.

        This is for trusted bytes: for others the constructor may have to check values.
        """
        fields = dataclasses.fields(cls)
        self.cls = cls
        self.exactly = exactly
        self.given = [field.name for field in fields if field.init]
        self.late = [field.name for field in fields if not field.init]
        # Generic sets this attribute, which a value does not need.
        self.known = {"__orig_class__", *self.given, *self.late}
        self.slots = [
            name
            for each in cls.__mro__
            if "__slots__" in vars(each)  # not those of built-in bases, such as Exception
            for name, found in vars(each).items()
            if type(found) is MemberDescriptorType and name not in self.known
        ]

    def parts(self, value: Any) -> list[Any]:
        """Return the parts of an object. Raises CodecError if it has other attributes."""
        if self.slots or not self.known.issuperset(getattr(value, "__dict__", ())):
            self._refuse_others(value)
        parts = [getattr(value, name) for name in self.given]
        if self.late:
            parts.append({name: getattr(value, name) for name in self.late if hasattr(value, name)})
        return parts

    def make(self, *parts: Any) -> Any:
        """Make an object of its parts. Raises CodecError, and the constructor's errors."""
        late: Any = {}
        if self.late and len(parts) == len(self.given) + 1:
            *parts, late = parts  # type: ignore[assignment]
        if type(late) is not dict or not late.keys() <= {*self.late}:
            raise CodecError(f"expected fields of a {self.cls.__qualname__}, got {late!r:.100}")
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
                f"a {self.cls.__qualname__} has attributes that are not fields, and would be lost: "
                f"{', '.join(others)}. Declare them, as by field(init=False)"
            )


VERSION = 1

ANY_NUMBER = sys.maxsize
"""No limit of the number of values."""
# Values in a slice: of plain values, a few milliseconds of work.
_SLICE = 10_000
# Fewer bytes cannot have enough values to hold up others.
_AT_ONCE = 32 * 1024

(
    _TUPLE, _SET, _FROZENSET, _INT, _DATETIME, _DATE, _TIME, _TIMEDELTA, _DECIMAL, _UUID,
    _DATACLASS, _ENUM, _FULL_DATETIME, _FULL_TIME,
) = range(1, 15)  # fmt: skip
_FULL = {_DATETIME: _FULL_DATETIME, _TIME: _FULL_TIME}
_TIMESTAMP = -1  # of msgpack's own
_DURATION = Struct("!iii")

Types = Mapping[str, type] | Iterable[type]
Encoding = tuple[int, Callable[[Any], Any]]
"""The number of an extension, and a function for its data: bytes, or a list to encode."""


class Codec:
    """An encoding with dataclasses and enumerations that both sides know by name.

    It is safe in every thread.
    """

    __dir__ = public_names

    def __init__(self, types: Types = (), max_values: int = ANY_NUMBER) -> None:
        """Register `types`: a mapping of names and classes, or classes, which have their own names.

        Bytes with more than `max_values` are not decoded; a container counts as four. Raises
        ConfigError for anything but a dataclass or an enumeration, and for two classes of one name.
        """
        self._encodings: dict[type, Encoding] = dict(_ENCODINGS)
        self._decodings: dict[str, tuple[type, Callable[[list[Any]], Any]]] = {}
        self._later: dict[str, Callable[[Any], Iterable[Any]]] = {}
        for name, cls in named(types):
            self.register(name, cls)
        self._local = threading.local()
        self.max_values = max_values

    def add(
        self, name: str, cls: type, parts: Callable[[Any], Iterable[Any]], make: Callable[..., Any]
    ) -> None:
        """Register a type: `parts` takes an object apart, and `make(*parts)` makes one."""
        self._check_name(name, cls)
        self._encodings[cls] = (_DATACLASS, lambda value: [name, *parts(value)])
        self._decodings[name] = (cls, lambda items: make(*items))

    def add_later(
        self, name: str, parts: Callable[[Any], Iterable[Any]], make: Callable[..., Any]
    ) -> None:
        """Register a type by its module and name, without importing the module."""
        self._later[name] = parts
        self._decodings[name] = (object, lambda items: make(*items))

    def _check_name(self, name: str, cls: type) -> None:
        if name in self._decodings and self._decodings[name][0] is not cls:
            raise ConfigError(f"two types have the name {name!r}: give them names in a dict")

    def register(self, name: str, cls: type, *, exactly: bool = False) -> None:
        """Register a dataclass or an enumeration. Raises ConfigError for others.

        `exactly` is for dataclasses: see DataclassParts.
        """
        self._check_name(name, cls)
        if isinstance(cls, type) and is_dataclass(cls):
            taken = DataclassParts(cls, exactly)
            self.add(name, cls, taken.parts, taken.make)
        elif isinstance(cls, type) and issubclass(cls, enum.Flag):
            self._encodings[cls] = (_ENUM, lambda value: [name, value.value])
            self._decodings[name] = (cls, lambda items: cls(*items))
        elif isinstance(cls, type) and issubclass(cls, enum.Enum):
            self._encodings[cls] = (_ENUM, lambda value: [name, value.name])
            self._decodings[name] = (cls, lambda items: cls[items[0]])
        else:
            raise ConfigError(
                "expected a dataclass or an enumeration to register, got " + safe_repr(cls)
            )

    # --- encoding ---------------------------------------------------------------------------------

    def encode(self, value: Any) -> bytes:
        """Return the bytes of a value. Raises CodecError, which names an unknown type."""
        self._local.depth = 0
        return self._pack(value)

    def encode_rows(self, rows: list[Any]) -> bytes:
        """Return the bytes of a list of values, in columns if they are tuples of one length."""
        columns = columns_of(rows)
        return b"\0" + self.encode(rows) if columns is None else b"\1" + self.encode(columns)

    def encode_lots(self, rows: list[Any], longest: float) -> Iterator[tuple[bytes, int]]:
        """Yield rows as bytes, and their number: in groups that fit into frames of `longest` bytes.

        A row that is too long for any frame is a lot of its own.
        """
        data = self.encode_rows(rows)
        if len(data) + _BEFORE_ROWS <= longest or len(rows) == 1:
            yield data, len(rows)
            return
        middle = len(rows) // 2
        yield from self.encode_lots(rows[:middle], longest)
        yield from self.encode_lots(rows[middle:], longest)

    def _pack(self, value: Any) -> bytes:
        """Pack on this level of extensions: each level has its own packer in each thread."""
        local = self._local
        if not hasattr(local, "packers"):
            local.packers = []
        depth = local.depth
        if depth == len(local.packers):
            local.packers.append(
                msgpack.Packer(strict_types=True, default=self._extend, buf_size=4096)
            )
        try:
            packed: bytes = local.packers[depth].pack(value)
        except CodecError:
            raise
        except BaseException as error:  # of a user's class
            if comes_from_signal(error):
                raise
            # RecursionError and "recursion limit exceeded", or an invalid text.
            raise CodecError(f"a value cannot be encoded: {safe_str(error)}") from error
        return packed

    def _extend(self, value: Any) -> msgpack.ExtType:
        found = self._encodings.get(type(value))
        if found is None:
            return self._encode_other(value)
        code, prepare = found
        if code in _FULL and times.needs_more(value):
            code, prepare = _FULL[code], times.to_full
        data = prepare(value)
        if not isinstance(data, bytes):
            if self._local.depth == DEEPEST:
                raise CodecError(f"a value is nested in more than {DEEPEST} extensions")
            self._local.depth += 1
            try:
                data = self._pack(data)
            finally:
                self._local.depth -= 1
        return msgpack.ExtType(code, data)

    def _encode_other(self, value: Any) -> msgpack.ExtType:
        """Return an extension of a value of an unregistered type. Raises CodecError."""
        name = f"{type(value).__module__}.{type(value).__qualname__}"
        if name in self._later:
            parts = self._later[name]
            self._encodings[type(value)] = (_DATACLASS, lambda value: [name, *parts(value)])
            return self._extend(value)
        raise CodecError(
            f"a {name} cannot be encoded: "
            "messages may have plain values, and dataclasses and enumerations that were "
            "registered with types="
        )

    # --- decoding ---------------------------------------------------------------------------------

    def decode(self, data: bytes | memoryview, *, is_trusted: bool = False) -> Any:
        """Return the value in `data`. Raises CodecError, whatever the bytes are.

        Its memory and work are bounded by the length of `data`, times a constant, and by the
        codec's `max_values`: sets and dicts of colliding keys are refused. `is_trusted` means that
        this process has made the bytes, which have no such limits.
        """
        unpacking = self._unpacking(data, is_trusted)
        while not _advance(unpacking, data, _SLICE):
            pass  # and another thread may have the interpreter
        return unpacking.value

    def decode_rows(self, data: bytes | memoryview, *, is_trusted: bool = False) -> list[Any]:
        """Return the values that `encode_rows` encoded. Raises CodecError, as `decode()`."""
        return _rows_of(data, self.decode(memoryview(data)[1:], is_trusted=is_trusted))

    def decoding(self, data: bytes | memoryview) -> Generator[None, None, Any]:
        """Decode in slices: a generator that yields after each, and returns the value."""
        unpacking = self._unpacking(data, is_trusted=False)
        while not _advance(unpacking, data, _SLICE if len(data) > _AT_ONCE else ANY_NUMBER):
            yield
        return unpacking.value

    def decoding_rows(self, data: bytes | memoryview) -> Generator[None, None, list[Any]]:
        """Decode rows in slices, as `decoding()`."""
        return _rows_of(data, (yield from self.decoding(memoryview(data)[1:])))

    def _unpacking(self, data: bytes | memoryview, is_trusted: bool) -> Unpacking:
        return Unpacking(data, self._plain, self._compose, self.max_values, is_trusted)

    def _plain(self, code: int, data: bytes) -> Any:
        """Return the value of an extension's bytes. Raises CodecError."""
        make = _PLAIN.get(code)
        if make is None:
            raise CodecError(f"there is no extension {code}")
        return make(data)

    def _compose(self, code: int, items: list[Any]) -> Any:
        """Return the dataclass or the member of an enumeration with these parts."""
        name = items[0] if items else None
        if type(name) is not str or name not in self._decodings:
            raise CodecError(f"no type is registered here as {name!r:.100}")
        cls, make = self._decodings[name]
        if issubclass(cls, enum.Enum) != (code == _ENUM) or (code == _ENUM and len(items) != 2):
            raise CodecError(f"an extension {code} is not a {name}")
        return make(items[1:])


def _advance(unpacking: Unpacking, data: bytes | memoryview, work: int) -> bool:
    """Do a slice of work, and tell whether all is done. Raises only CodecError."""
    try:
        return unpacking.advance(work)
    except CodecError:
        raise
    except BaseException as error:  # of a user's class
        if comes_from_signal(error):
            raise
        raise CodecError(
            f"{len(data)} bytes cannot be decoded: {type(error).__name__}: {safe_str(error)}"
        ) from error


def _rows_of(data: bytes | memoryview, values: Any) -> list[Any]:
    """Return decoded `values` as rows, by the layout in the first byte."""
    layout = bytes(data[:1])
    if layout == b"\0" and type(values) is list:
        return values
    if layout != b"\1" or type(values) is not list or {*map(type, values)} != {list}:
        raise CodecError(f"expected rows, got {type(values)} with the layout {layout!r}")
    try:
        return list(zip(*values, strict=True))
    except ValueError as error:
        raise CodecError(f"columns of rows differ in length: {error}") from None


def named(types: Types) -> Iterable[tuple[str, type]]:
    """Return types with their names. Raises ConfigError."""
    if isinstance(types, Mapping):
        return types.items()
    if not isinstance(types, Iterable):
        raise ConfigError(
            f"types= expects classes, or a dict of names and classes, got {safe_repr(types)}"
        )
    return [(getattr(cls, "__qualname__", repr(cls)), cls) for cls in types]


def _whole(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _duration(value: timedelta) -> bytes:
    return _DURATION.pack(value.days, value.seconds, value.microseconds)


_ENCODINGS: dict[type, Encoding] = {
    tuple: (_TUPLE, list),
    set: (_SET, list),
    frozenset: (_FROZENSET, list),
    int: (_INT, _whole),
    datetime: (_DATETIME, times.to_plain),
    date: (_DATE, lambda value: value.isoformat().encode()),
    time: (_TIME, times.to_plain),
    timedelta: (_TIMEDELTA, _duration),
    Decimal: (_DECIMAL, lambda value: str(value).encode()),
    UUID: (_UUID, lambda value: value.bytes),
}

_PLAIN: dict[int, Callable[[bytes], Any]] = {
    _TIMESTAMP: lambda data: msgpack.Timestamp.from_bytes(data).to_datetime(),
    _INT: lambda data: int.from_bytes(data, "big", signed=True),
    _DATETIME: times.datetime_of_plain,
    _FULL_DATETIME: times.datetime_of_full,
    _DATE: lambda data: date.fromisoformat(data.decode("ascii")),
    _TIME: times.time_of_plain,
    _FULL_TIME: times.time_of_full,
    _TIMEDELTA: lambda data: timedelta(*_DURATION.unpack(data)),
    _DECIMAL: lambda data: Decimal(data.decode("ascii")),
    _UUID: lambda data: UUID(bytes=data),
}
