"""Reads and releases published rows."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

from callboard.core.log import log
from callboard.remote.errors import NotPublished, StateError
from callboard.remote.protocol.requests import PublishedPiece
from callboard.remote.storage.journal import Journal

if TYPE_CHECKING:
    import pyarrow as pa


def read(journal: Journal, entry: str, row: int) -> PublishedPiece:
    """Return the piece with a row. Raises NotPublished."""
    first, end, _ = journal.published(entry)
    piece = journal.piece(entry, row) if first <= row < end else None
    if piece is None:
        raise NotPublished(_absence(entry, row, first, end))
    return piece


def release(journal: Journal, entry: str, row: int) -> None:
    """Release the rows before this one. Raises NotPublished."""
    first, end, _ = journal.published(entry)
    if row > end:
        raise NotPublished(_absence(entry, row, first, end))
    if row > first:
        try:
            journal.release(entry, row)
        except sqlite3.Error as error:
            log.error("release failed", entry=entry, row=row, error=error)
            raise NotPublished(f"rows of {entry!r} cannot be released: {error}") from error


def check_columns(entry: str, before: bytes, now: pa.Schema | None) -> None:
    """Raise StateError if unreleased rows have other columns than the class has now."""
    if now is None:
        raise StateError(f"{entry!r} has published rows, but its class no longer publishes any")
    import pyarrow as pa

    old = pa.ipc.read_schema(pa.py_buffer(before))
    if not old.equals(now):
        raise StateError(
            f"{entry!r} has unreleased rows with the columns [{_shown(old)}], but its class "
            f"publishes [{_shown(now)}]"
        )


def _absence(entry: str, row: int, first: int, end: int) -> str:
    if row < first:
        return f"row {row} of {entry!r} was released, as were all before row {first}"
    return f"row {row} of {entry!r} is not published yet: only {end} rows are"


def _shown(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name}: {field.type}" for field in schema)
