"""Checksums of what is on disk for good, by which damage is found.

SQLite has checksums in its log alone, and takes what is behind a wrong one for never written. So
each row of the journal has a seal, batches have one that goes over all before them as well, and say
how many frames they have for each entry.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable
from typing import NamedTuple

from callboard.remote.errors import StateError
from callboard.remote.protocol.staged_rows import checksum

_ADDED = {
    "batches": ("contents BLOB NOT NULL DEFAULT x''", "seal INTEGER NOT NULL DEFAULT 0"),
    "frames": ("seal INTEGER NOT NULL DEFAULT 0",),
    "positions": ("published INTEGER NOT NULL DEFAULT 0", "seal INTEGER NOT NULL DEFAULT 0"),
    "publications": ("seal INTEGER NOT NULL DEFAULT 0",),
    "pieces": ("seal INTEGER NOT NULL DEFAULT 0",),
}


class Content(NamedTuple):
    """A batch's content for one entry: the number of frames, and the sum of their seals."""

    frames: int
    seals: int


def seal_of(*values: object) -> int:
    """Return the checksum of a row's values: numbers, texts, bytes and None."""
    seal = 0
    for value in values:
        raw = value if isinstance(value, bytes) else repr(value).encode()
        seal = zlib.crc32(raw, zlib.crc32(b"%d:" % len(raw), seal))
    return seal


def contents_of(frames: Iterable[tuple[str, int]]) -> dict[str, Content]:
    """Return what a batch has for each entry, of the entries and seals of its frames."""
    found: dict[str, Content] = {}
    for entry, seal in frames:
        count, seals = found.get(entry, (0, 0))
        found[entry] = Content(count + 1, seals + seal)
    return found


def packed(contents: dict[str, Content]) -> bytes:
    """Return contents as bytes."""
    return json.dumps(contents, sort_keys=True).encode() if contents else b""


def unpacked(contents: bytes) -> dict[str, Content]:
    """Return contents of bytes whose seal was right."""
    return {entry: Content(*each) for entry, each in json.loads(contents or b"{}").items()}


def damage(journal: object, what: str) -> StateError:
    """Return the error that says what is damaged, and what may be done."""
    return StateError(
        f"{journal} is damaged: {what}. Nothing was changed. Put a copy of the whole state "
        "directory from before the damage in its place"
    )


def add_seals(db: sqlite3.Connection) -> None:
    """Give a journal of an earlier version its seals."""
    for table, columns in _ADDED.items():
        there = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
        for column in columns:
            if column.split()[0] not in there:
                db.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
    db.execute(
        "UPDATE positions SET published = coalesce("
        "(SELECT next FROM publications WHERE publications.entry = positions.entry), 0)"
    )
    db.execute("UPDATE positions SET seal = seal_of(entry, batch, published, snapshot)")
    db.execute("UPDATE publications SET seal = seal_of(entry, first, next, schema, bytes)")
    db.execute("UPDATE pieces SET seal = seal_of(entry, first, rows, payload)")
    _seal_frames(db)
    seal = 0
    for number, job, batch, winners in db.execute(
        "SELECT number, job, batch, winners FROM batches ORDER BY number"
    ).fetchall():
        frames = db.execute("SELECT entry, seal FROM frames WHERE batch = ?", (number,))
        contents = packed(contents_of(frames))
        seal = seal_of(seal, number, job, batch, winners, contents)
        db.execute(
            "UPDATE batches SET contents = ?, seal = ? WHERE number = ?", (contents, seal, number)
        )


def _seal_frames(db: sqlite3.Connection) -> None:
    """Seal them as a commit does: with the checksum that staging has, of a partition's payloads."""
    part, check = None, 0
    for (place,) in db.execute("SELECT number FROM frames ORDER BY number").fetchall():
        batch, entry, partition, row, layout, payload = db.execute(
            "SELECT batch, entry, partition, row, layout, payload FROM frames WHERE number = ?",
            (place,),
        ).fetchone()
        if part != (batch, entry, partition):
            part, check = (batch, entry, partition), 0
        check = checksum(payload, check)
        seal = seal_of(batch, entry, partition, row, layout, check)
        db.execute("UPDATE frames SET seal = ? WHERE number = ?", (seal, place))
