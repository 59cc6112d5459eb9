"""Times as texts: ISO 8601, with the fold, and the name of the zone as in RFC 9557.

A plain text is enough for a `fold` of 0 and no zone, or one that is an offset. Else there is a `0`
or a `1` before it, which is the fold, and a zone's name in brackets where it has one:
`12026-10-25T02:30:00+01:00[Europe/Paris]`.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Callable
from datetime import datetime, time, timedelta, timezone
from functools import cache
from typing import Any

from callboard.remote.errors import CodecError

_TINY_OFFSET = re.compile(r"([+-])00:00:00\.(\d{6})$")


def needs_more(value: datetime | time) -> bool:
    """Tell whether a plain text would lose something."""
    return value.fold == 1 or bool(_name_of(value))


def to_plain(value: datetime | time) -> bytes:
    """Return the plain text of a time. Raises CodecError for a zone without an offset."""
    if value.tzinfo is not None and value.utcoffset() is None:
        raise CodecError(f"{value!r} cannot be encoded: its zone has no offset without a date")
    return value.isoformat().encode()


def to_full(value: datetime | time) -> bytes:
    """Return the text of a time with its fold, and the name of its zone. Raises CodecError."""
    name = _name_of(value)
    if not name:
        return b"%d" % value.fold + to_plain(value)
    return f"{value.fold}{value.isoformat()}[{name}]".encode()


def datetime_of_plain(data: bytes) -> datetime:
    """Read a datetime written by `to_plain()`. Raises ValueError."""
    value: datetime = _read(datetime.fromisoformat, data.decode("ascii"))
    return value


def time_of_plain(data: bytes) -> time:
    """Read a time of the day written by `to_plain()`. Raises ValueError."""
    value: time = _read(time.fromisoformat, data.decode("ascii"))
    return value


def datetime_of_full(data: bytes) -> datetime:
    """Read a datetime written by `to_full()`. Raises ValueError.

    The instant is kept. If the zone is unknown here, the offset stays. If the zone has another
    offset here, the time of the day changes.
    """
    fold, text, name = _parts(data)
    value = datetime_of_plain(text).replace(fold=fold)
    if not name:
        return value
    offset = value.utcoffset()
    if offset is None:
        raise ValueError(f"a zone {name!r} without an offset")
    zone = _zone(name)
    if zone is None:
        return value
    local = value.replace(tzinfo=zone)
    return local if local.utcoffset() == offset else value.astimezone(zone)


def time_of_full(data: bytes) -> time:
    """Read a time of the day written by `to_full()`. Raises CodecError for an unknown zone."""
    fold, text, name = _parts(data)
    value = time_of_plain(text).replace(fold=fold)
    if not name:
        return value
    zone = _zone(name)
    if zone is None:
        if value.tzinfo is None:
            raise CodecError(f"the zone {name!r} is unknown here, and {value} has no offset")
        return value
    return value.replace(tzinfo=zone)


def _parts(data: bytes) -> tuple[int, bytes, str]:
    """Return the fold, the plain text, and the zone's name, which may be empty."""
    text, bracket, rest = data[1:].partition(b"[")
    if data[:1] not in (b"0", b"1") or (bracket and not rest.endswith(b"]")):
        raise ValueError(f"expected a time with a fold, got {data!r:.100}")
    return int(data[:1]), text, rest[:-1].decode("ascii")


def _name_of(value: datetime | time) -> str:
    zone = value.tzinfo
    name = zone.key if isinstance(zone, zoneinfo.ZoneInfo) else None
    return name if name and name.isascii() else ""


def _zone(name: str) -> zoneinfo.ZoneInfo | None:
    """Return a zone of the database. Unknown names from outside are not searched as files."""
    is_known = name.removeprefix("posix/").removeprefix("right/") in _zones()
    return _known_zone(name) if is_known else None


@cache
def _zones() -> frozenset[str]:
    return frozenset(zoneinfo.available_timezones())


@cache
def _known_zone(name: str) -> zoneinfo.ZoneInfo | None:
    try:
        return zoneinfo.ZoneInfo(name)
    except zoneinfo.ZoneInfoNotFoundError:
        return None


def _read(read: Callable[[str], Any], text: str) -> Any:
    """Read a time. CPython's reader ignores an offset of less than a second."""
    value, tiny = read(text), _TINY_OFFSET.search(text)
    if tiny is None:
        return value
    return value.replace(tzinfo=timezone(timedelta(microseconds=int(tiny[1] + tiny[2]))))
