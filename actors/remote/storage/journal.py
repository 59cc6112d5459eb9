"""The durable state: committed batches, rows not yet applied, positions, and published rows."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from struct import Struct
from threading import Lock
from typing import NamedTuple

from callboard.core.log import log
from callboard.remote.errors import StateError
from callboard.remote.protocol.requests import (
    BatchName,
    PublishedPiece,
    PublishedRange,
    StagedAttempt,
)
from callboard.remote.storage.database import Database, Version, bring_up
from callboard.remote.storage.integrity import (
    HighWater,
    HighWaterMark,
    add_checksums,
    check_journal,
    contents_of,
    damage,
    frames_in,
    packed,
    row_checksum,
)
from callboard.remote.storage.outbox import Piece
from callboard.remote.storage.parts import FreshFrames, JournalFrame, StagedPart, frames_of

# A batch's number is its place in the order of commits. A position is the last batch that an entry
# has applied durably; rows up to it are deleted. Names of committed batches are kept for ever.
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
# Version 2. An entry's published rows have the numbers 0, 1, 2...; `next` is that of the next one,
# and those before `first` were released.
_PUBLISHED = """
CREATE TABLE publications (
    entry TEXT PRIMARY KEY, first INTEGER NOT NULL, next INTEGER NOT NULL, schema BLOB NOT NULL);
CREATE TABLE pieces (
    number INTEGER PRIMARY KEY, entry TEXT NOT NULL, first INTEGER NOT NULL, rows INTEGER NOT NULL,
    payload BLOB NOT NULL, UNIQUE (entry, first));
"""
# Version 3: the bytes of the pieces that are there.
_BYTES = """
ALTER TABLE publications ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE publications SET bytes = (
    SELECT coalesce(sum(length(payload)), 0) FROM pieces WHERE pieces.entry = publications.entry);
"""
# Version 4 adds checksums.
_VERSIONS: tuple[Version, ...] = (_TABLES, _PUBLISHED, _BYTES, add_checksums)
_FUNCTIONS = {"row_checksum": row_checksum}
_WINNER = Struct("!IQQ")
_FRESH = 64 * 2**20  # bytes of committed rows that are kept in memory until they are applied


class Position(NamedTuple):
    """The last batch that an entry has applied durably, and its state at that point."""

    batch: int
    snapshot: bytes | None


class Publication(NamedTuple):
    """Rows that an entry has published, in order, and a serialized Arrow schema."""

    schema: bytes
    pieces: Sequence[Piece]


class Journal(Database):
    """The database of one server. Safe in every thread."""

    def __init__(self, path: Path) -> None:
        """Open or create it. Raises StateError, also if it is damaged; then it is not changed.

        Beside it, as `.mark`, is the file with its progress.
        """
        self._path = path
        self._mark = HighWaterMark(path.with_suffix(".mark"))
        try:
            noted = self._mark.read()
            check_journal(path, noted, self._make)
            super().__init__(path, _VERSIONS, _FUNCTIONS)
        except OSError as error:
            raise StateError(f"{path} cannot be used: {error}") from error
        self.unreleased = 0
        """The number of published rows that wait for readers, of all entries."""
        self.unreleased_bytes: Mapping[str, int] = {}
        """Their size in bytes, for each entry, with the rows before them in their pieces."""
        self._counting = Lock()
        self._fresh = FreshFrames(_FRESH)
        try:
            self._mark.open()
            self._note_durable()
            self._count_unreleased()
        except (sqlite3.Error, OSError) as error:
            self.close()
            raise StateError(f"{path} cannot be used: {error}") from error

    def _make(self, db: sqlite3.Connection) -> None:
        bring_up(db, self._path, _VERSIONS, _FUNCTIONS)

    def _note_durable(self) -> None:
        try:
            self._mark.write(HighWater.of(self._db))
        except sqlite3.Error as error:  # the transaction is on disk all the same
            log.error("the journal's mark cannot be written", path=str(self._path), error=error)

    def close(self) -> None:
        """Close it. Later calls raise sqlite3.ProgrammingError."""
        super().close()
        self._mark.close()

    # --- batches ----------------------------------------------------------------------------------

    def append(
        self, name: BatchName, winners: Sequence[StagedAttempt], parts: Sequence[StagedPart]
    ) -> int:
        """Commit a batch with all its rows, and return its number when it is on disk.

        Raises sqlite3.Error and OSError; then nothing of it is committed.
        """
        stored: list[tuple[str, int]] = []

        def rows() -> Iterator[tuple[object, ...]]:
            for part in parts:
                for frame, check in zip(frames_of(part), part.checks(), strict=True):
                    partition, row, layout, payload = frame
                    checksum = row_checksum(number, part.entry, partition, row, int(layout), check)
                    stored.append((part.entry, checksum))
                    yield number, part.entry, partition, row, layout, payload, checksum

        with self._transaction() as db:
            last, before, *_ = HighWater.of(db)
            number = last + 1
            db.executemany(
                "INSERT INTO frames (batch, entry, partition, row, layout, payload, checksum)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                rows(),
            )
            batch = (number, *name, _digest(winners), packed(contents_of(stored)))
            db.execute(
                "INSERT INTO batches (number, job, batch, winners, contents, checksum)"
                " VALUES (?, ?, ?, ?, ?, ?)",
                (*batch, row_checksum(before, *batch)),
            )
        self._fresh.keep(number, parts)
        return number

    def is_committed(self, name: BatchName) -> bool:
        """Tell whether a batch was committed, with any winners."""
        return self._winners(name) is not None

    def has_winners(self, name: BatchName, winners: Sequence[StagedAttempt]) -> bool:
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
        """Return the number of the first batch with rows that an entry may need again."""
        return self._number("SELECT min(batch) FROM frames")

    def entries(self, number: int | None = None) -> list[str]:
        """Return the entries of rows: those of a batch, or of all."""
        if number is None:
            found = self._rows("SELECT DISTINCT entry FROM frames")
        else:
            found = self._rows("SELECT DISTINCT entry FROM frames WHERE batch = ?", number)
        return sorted(entry for (entry,) in found)

    def frames(self, number: int, entry: str) -> Iterator[JournalFrame]:
        """Return the rows of a batch for an entry, by partition and row.

        Raises StateError if they are damaged. The first time after the commit they come from
        memory, if there was room for them.
        """
        fresh = self._fresh.take(number, entry)
        if fresh is not None:
            yield from fresh
            return
        for frame, _ in frames_in(self._path, self._rows, number, entry):
            yield frame

    # --- positions --------------------------------------------------------------------------------

    def positions(self) -> dict[str, Position]:
        """Return the positions of the entries."""
        found = self._rows("SELECT entry, batch, snapshot FROM positions")
        return {entry: Position(batch, snapshot) for entry, batch, snapshot in found}

    def mark(
        self,
        number: int,
        snapshots: Mapping[str, bytes | None],
        published: Mapping[str, Publication] | None = None,
    ) -> None:
        """Move entries to a batch, with their states at its end. Raises sqlite3.Error.

        In the same transaction, their rows up to this batch are deleted, and the rows that they
        have published since the last move can be read. If all entries have states and none has
        published, nobody outside can know of it. Then it is not durable: without it the rows, which
        are durable, lead to the same states again.
        """
        durable = bool(published) or None in snapshots.values()
        with self._transaction(durable) as db:
            for entry, publication in (published or {}).items():
                _publish(db, entry, publication)
            for entry, snapshot in snapshots.items():
                found = db.execute("SELECT next FROM publications WHERE entry = ?", (entry,))
                (end,) = found.fetchone() or (0,)
                db.execute(
                    "REPLACE INTO positions (entry, batch, snapshot, published, checksum)"
                    " VALUES (?, ?, ?, ?, ?)",
                    (entry, number, snapshot, end, row_checksum(entry, number, end, snapshot)),
                )
                db.execute("DELETE FROM frames WHERE batch <= ? AND entry = ?", (number, entry))
        if published:
            self._count_unreleased()

    # --- published rows ---------------------------------------------------------------------------

    def published(self, entry: str) -> PublishedRange:
        """Return which rows of an entry can be read."""
        found = self._rows("SELECT first, next, schema FROM publications WHERE entry = ?", entry)
        return PublishedRange(*found[0]) if found else PublishedRange(0, 0, b"")

    def publishers(self) -> list[str]:
        """Return the entries with published rows that are not released."""
        found = self._rows("SELECT entry FROM publications WHERE first < next ORDER BY entry")
        return [entry for (entry,) in found]

    def piece(self, entry: str, row: int) -> PublishedPiece | None:
        """Return the piece with a row; None if there is none. Raises StateError for damage."""
        found = self._rows(
            "SELECT first, rows, payload, checksum FROM pieces WHERE entry = ? AND first <= ?"
            " ORDER BY first DESC LIMIT 1",
            entry,
            row,
        )
        if not found or row >= found[0][0] + found[0][1]:
            return None
        *piece, checksum = found[0]
        if checksum != row_checksum(entry, *piece):
            raise damage(self._path, f"published row {row} of {entry!r} has another checksum")
        return PublishedPiece(*piece)

    def release(self, entry: str, row: int) -> None:
        """Release the rows before this one; a repetition, or an earlier row, changes nothing.

        Raises sqlite3.Error.
        """
        with self._transaction() as db:
            db.execute(
                "UPDATE publications SET first = ? WHERE entry = ? AND first < ?", (row, entry, row)
            )
            db.execute(
                "UPDATE publications SET bytes = bytes - (SELECT coalesce(sum(length(payload)), 0)"
                " FROM pieces WHERE entry = ? AND first + rows <= ?) WHERE entry = ?",
                (entry, row, entry),
            )
            db.execute("DELETE FROM pieces WHERE entry = ? AND first + rows <= ?", (entry, row))
            _update_checksum(db, entry)
        self._count_unreleased()

    def _count_unreleased(self) -> None:
        with self._counting:  # the last count is the latest
            found = self._rows("SELECT entry, next - first, bytes FROM publications")
            self.unreleased = sum(rows for _, rows, _ in found)
            self.unreleased_bytes = {entry: size for entry, _, size in found}


def _publish(db: sqlite3.Connection, entry: str, publication: Publication) -> None:
    db.execute(
        "INSERT INTO publications (entry, first, next, schema) VALUES (?, 0, 0, ?)"
        " ON CONFLICT (entry) DO UPDATE SET schema = excluded.schema",
        (entry, publication.schema),
    )
    (at,) = db.execute("SELECT next FROM publications WHERE entry = ?", (entry,)).fetchone()
    for rows, payload in publication.pieces:
        db.execute(
            "INSERT INTO pieces (entry, first, rows, payload, checksum) VALUES (?, ?, ?, ?, ?)",
            (entry, at, rows, payload, row_checksum(entry, at, rows, payload)),
        )
        at += rows
    size = sum(len(payload) for _, payload in publication.pieces)
    db.execute(
        "UPDATE publications SET next = ?, bytes = bytes + ? WHERE entry = ?", (at, size, entry)
    )
    _update_checksum(db, entry)


def _update_checksum(db: sqlite3.Connection, entry: str) -> None:
    db.execute(
        "UPDATE publications SET checksum = row_checksum(entry, first, next, schema, bytes)"
        " WHERE entry = ?",
        (entry,),
    )


def _digest(winners: Sequence[StagedAttempt]) -> bytes:
    """Return a digest of a list of winners, in any order."""
    return sha256(b"".join(_WINNER.pack(*each) for each in sorted(winners))).digest()
