"""Messages about published rows: the bodies of PUBLISHED, READ and RELEASE, and their answers.

Without input and output. A body is an entry's place in WELCOME, and for READ and RELEASE the number
of a row. Answers are values, as `codec` encodes them.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import NamedTuple

from callboard.remote.protocol.kinds import ENTRY, MessageKind, unpack
from callboard.remote.wire.frames import Buffer

_ROW = Struct("!Q")  # behind the entry's place


class PublishedQuery(NamedTuple):
    """Which rows there are? Answered with PublishedRange's fields."""

    entry: int


class ReadRows(NamedTuple):
    """The piece with this row, please. Answered with PublishedPiece's fields."""

    entry: int
    row: int


class Release(NamedTuple):
    """Rows before this one may go. Answered with None."""

    entry: int
    row: int


PublishingContent = PublishedQuery | ReadRows | Release


class PublishedRange(NamedTuple):
    """The rows of an entry that can be read: from `first` on, before `end`."""

    first: int
    end: int
    schema: bytes
    """An Arrow schema, as it is serialized; empty where nothing was published yet."""


class PublishedPiece(NamedTuple):
    """Rows from `first` on, in a stream of Arrow's IPC format."""

    first: int
    rows: int
    payload: bytes


def row_body(row: int) -> bytes:
    """Return the body of a READ or RELEASE, without the entry's place before it."""
    return _ROW.pack(row)


def _read_query(body: Buffer) -> PublishedQuery:
    (entry,), _ = unpack(ENTRY, body, MessageKind.PUBLISHED)
    return PublishedQuery(entry)


def _read_rows(body: Buffer) -> ReadRows:
    (entry,), rest = unpack(ENTRY, body, MessageKind.READ)
    (row,), _ = unpack(_ROW, rest, MessageKind.READ)
    return ReadRows(entry, row)


def _read_release(body: Buffer) -> Release:
    (entry,), rest = unpack(ENTRY, body, MessageKind.RELEASE)
    (row,), _ = unpack(_ROW, rest, MessageKind.RELEASE)
    return Release(entry, row)


READERS: dict[MessageKind, Callable[[Buffer], PublishingContent]] = {
    MessageKind.PUBLISHED: _read_query,
    MessageKind.READ: _read_rows,
    MessageKind.RELEASE: _read_release,
}
