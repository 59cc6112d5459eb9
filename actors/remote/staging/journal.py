"""What is on disk for good: committed batches, their rows until they are applied, positions, and
what was published, until it is released.

A SQLite database (https://www.sqlite.org/wal.html): with a write-ahead log and `synchronous=FULL`
a transaction that was committed has passed an fsync.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import Any, NamedTuple

from callboard.remote.errors import StateError
from callboard.remote.staging.messages import BatchName, Layout, Winner
from callboard.remote.staging.outbox import Piece
from callboard.remote.staging.parts import StagedPart
from callboard.remote.staging.publishing import PublishedPiece, PublishedRange

VERSION = 2  # of the tables

# A batch's number is its place in the order of commits. A position is the last batch whose rows an
# entry has for good; rows up to it are deleted. What was committed is known for ever.
_TABLES = """
CREATE TABLE batches (
    number INTEGER PRIMARY KEY, job TEXT NOT NULL, batch INTEGER NOT NULL, winners BLOB NOT NULL,
    UNIQUE (job, batch));
CREATE TABLE frames (
    number INTEGER PRIMARY KEY, batch INTEGER NOT NULL, entry TEXT NOT NULL,
    partition INTEGER NOT NULL, row INTEGER NOT NULL, layout INTEGER NOT NULL,
    payload BLOB NOT NULL);
CREATE INDEX frames_of_batches ON frames (batch, entry);
CREATE TABLE positions (entry TEXT PRIMARY KEY, batch INTEGER NOT NULL, snapshot BLOB);
"""
# Of version 2. An entry's published rows have the numbers 0, 1, 2...; `next` is that of the next
# one, and those before `first` were released.
_PUBLISHED = """
CREATE TABLE publications (
    entry TEXT PRIMARY KEY, first INTEGER NOT NULL, next INTEGER NOT NULL, schema BLOB NOT NULL);
CREATE TABLE pieces (
    number INTEGER PRIMARY KEY, entry TEXT NOT NULL, first INTEGER NOT NULL, rows INTEGER NOT NULL,
    payload BLOB NOT NULL, UNIQUE (entry, first));
"""
# Rows are large, and soon deleted: so pages are large, and are not overwritten with zeros, as some
# builds of SQLite do without being told to; most never leave the log for the database.
_SETTINGS = (
    "page_size = 16384",
    "secure_delete = OFF",
    "journal_mode = WAL",
    "wal_autocheckpoint = 2048",
    "synchronous = FULL",
)
_WINNER = Struct("!IQQ")


class JournalFrame(NamedTuple):
    """Committed rows: which partition's, from which row on, and the bytes that hold them."""

    partition: int
    row: int
    layout: Layout
    payload: bytes


class Position(NamedTuple):
    """How far an entry has come for good, and its state at that point."""

    batch: int
    snapshot: bytes | None


class Publication(NamedTuple):
    """What an entry has published: a serialized Arrow schema, and rows in their order."""

    schema: bytes
    pieces: Sequence[Piece]


class Journal:
    """The database of one server. Safe in every thread."""

    def __init__(self, path: Path) -> None:
        """Open it, or make it. Raises StateError."""
        self._lock = Lock()
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise StateError(f"{path} cannot be opened: {error}") from error
        try:
            self._prepare(path)
            self.unreleased = self._count_unreleased()
            """How many published rows wait for readers, of all entries."""
        except sqlite3.Error as error:
            self._db.close()
            raise StateError(f"{path} cannot be used: {error}") from error
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, path: Path) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version > VERSION:
            raise StateError(
                f"{path} is of version {version}, from a later callboard; this one knows {VERSION}"
            )
        for setting in _SETTINGS:
            self._db.execute(f"PRAGMA {setting}")
        if version < VERSION:
            tables = (_TABLES if version == 0 else "") + _PUBLISHED
            self._db.executescript(f"BEGIN; {tables} PRAGMA user_version = {VERSION}; COMMIT")

    def close(self) -> None:
        """Close it. What is done with it afterwards raises sqlite3.ProgrammingError."""
        with self._lock:
            self._db.close()

    # --- batches ----------------------------------------------------------------------------------

    def append(
        self, name: BatchName, winners: Sequence[Winner], parts: Iterable[StagedPart]
    ) -> int:
        """Commit a batch, with all its rows, and return its number when it is on disk.

        Raises sqlite3.Error and OSError; then nothing of it is there.
        """
        with self._transaction() as db:
            number: int = db.execute(
                "INSERT INTO batches (job, batch, winners) VALUES (?, ?, ?) RETURNING number",
                (*name, _digest(winners)),
            ).fetchone()[0]
            for part in parts:
                row = 0
                for layout, rows, payload in part.frames():
                    db.execute(
                        "INSERT INTO frames (batch, entry, partition, row, layout, payload)"
                        " VALUES (?, ?, ?, ?, ?, ?)",
                        (number, part.entry, part.partition, row, layout, payload),
                    )
                    row += rows
        return number

    def is_committed(self, name: BatchName) -> bool:
        """Tell whether a batch was committed, with whatever winners."""
        return self._winners(name) is not None

    def has_winners(self, name: BatchName, winners: Sequence[Winner]) -> bool:
        """Tell whether a batch was committed with these winners."""
        return self._winners(name) == _digest(winners)

    def _winners(self, name: BatchName) -> bytes | None:
        found = self._rows("SELECT winners FROM batches WHERE (job, batch) = (?, ?)", *name)
        return found[0][0] if found else None

    @property
    def last(self) -> int:
        """The number of the last batch; 0 if there is none."""
        return self._number("SELECT max(number) FROM batches") or 0

    def name(self, number: int) -> BatchName:
        """Return the name of the batch with this number."""
        return BatchName(*self._rows("SELECT job, batch FROM batches WHERE number = ?", number)[0])

    # --- rows -------------------------------------------------------------------------------------

    def first_with_rows(self) -> int | None:
        """Return the number of the first batch that has rows which an entry may need again."""
        return self._number("SELECT min(batch) FROM frames")

    def entries(self, number: int | None = None) -> list[str]:
        """Return the entries that rows are for: those of a batch, or of all."""
        if number is None:
            found = self._rows("SELECT DISTINCT entry FROM frames")
        else:
            found = self._rows("SELECT DISTINCT entry FROM frames WHERE batch = ?", number)
        return sorted(entry for (entry,) in found)

    def frames(self, number: int, entry: str) -> Iterator[JournalFrame]:
        """Return the rows of a batch that are for an entry, by partition and row."""
        places = self._rows(
            "SELECT number FROM frames WHERE (batch, entry) = (?, ?) ORDER BY number", number, entry
        )
        for (place,) in places:
            partition, row, layout, payload = self._rows(
                "SELECT partition, row, layout, payload FROM frames WHERE number = ?", place
            )[0]
            yield JournalFrame(partition, row, Layout(layout), payload)

    # --- positions --------------------------------------------------------------------------------

    def positions(self) -> dict[str, Position]:
        """Return how far the entries have come for good."""
        found = self._rows("SELECT entry, batch, snapshot FROM positions")
        return {entry: Position(batch, snapshot) for entry, batch, snapshot in found}

    def mark(
        self,
        number: int,
        snapshots: Mapping[str, bytes | None],
        published: Mapping[str, Publication] | None = None,
    ) -> None:
        """Move entries to a batch, with their states at its end. Raises sqlite3.Error.

        In the same transaction the rows that are behind them are deleted, and what they have
        published since they were moved the last time can be read.
        """
        with self._transaction() as db:
            for entry, snapshot in snapshots.items():
                db.execute("REPLACE INTO positions VALUES (?, ?, ?)", (entry, number, snapshot))
                db.execute("DELETE FROM frames WHERE batch <= ? AND entry = ?", (number, entry))
            for entry, publication in (published or {}).items():
                _publish(db, entry, publication)
        if published:
            self.unreleased = self._count_unreleased()

    # --- published rows ---------------------------------------------------------------------------

    def published(self, entry: str) -> PublishedRange:
        """Return which rows of an entry can be read."""
        found = self._rows("SELECT first, next, schema FROM publications WHERE entry = ?", entry)
        return PublishedRange(*found[0]) if found else PublishedRange(0, 0, b"")

    def publishers(self) -> list[str]:
        """Return the entries that have published rows which were not released."""
        found = self._rows("SELECT entry FROM publications WHERE first < next ORDER BY entry")
        return [entry for (entry,) in found]

    def piece(self, entry: str, row: int) -> PublishedPiece | None:
        """Return the piece that has a row; None if there is none."""
        found = self._rows(
            "SELECT first, rows, payload FROM pieces WHERE entry = ? AND first <= ?"
            " ORDER BY first DESC LIMIT 1",
            entry,
            row,
        )
        if not found or row >= found[0][0] + found[0][1]:
            return None
        return PublishedPiece(*found[0])

    def release(self, entry: str, row: int) -> None:
        """Let the rows before this one go; once more, or an earlier one, changes nothing.

        Raises sqlite3.Error.
        """
        with self._transaction() as db:
            db.execute(
                "UPDATE publications SET first = ? WHERE entry = ? AND first < ?", (row, entry, row)
            )
            db.execute("DELETE FROM pieces WHERE entry = ? AND first + rows <= ?", (entry, row))
        self.unreleased = self._count_unreleased()

    def _count_unreleased(self) -> int:
        return self._number("SELECT sum(next - first) FROM publications") or 0

    # --- SQL --------------------------------------------------------------------------------------

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def _rows(self, sql: str, *values: object) -> list[Any]:
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def _number(self, sql: str) -> int | None:
        number: int | None = self._rows(sql)[0][0]
        return number


def _publish(db: sqlite3.Connection, entry: str, publication: Publication) -> None:
    db.execute(
        "INSERT INTO publications VALUES (?, 0, 0, ?)"
        " ON CONFLICT (entry) DO UPDATE SET schema = excluded.schema",
        (entry, publication.schema),
    )
    (at,) = db.execute("SELECT next FROM publications WHERE entry = ?", (entry,)).fetchone()
    for rows, payload in publication.pieces:
        db.execute(
            "INSERT INTO pieces (entry, first, rows, payload) VALUES (?, ?, ?, ?)",
            (entry, at, rows, payload),
        )
        at += rows
    db.execute("UPDATE publications SET next = ? WHERE entry = ?", (at, entry))


def _digest(winners: Sequence[Winner]) -> bytes:
    """Return what tells lists of winners apart, whose length does not grow with theirs."""
    return sha256(b"".join(_WINNER.pack(*each) for each in sorted(winners))).digest()
