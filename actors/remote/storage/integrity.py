"""Checks a journal before it is used, by checksums. Damage is reported, and not repaired."""

from __future__ import annotations

import json
import os
import sqlite3
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple, Self
from urllib.parse import quote

from callboard.core.log import log
from callboard.remote.errors import StateError
from callboard.remote.protocol.requests import Layout, payload_checksum
from callboard.remote.storage.parts import JournalFrame

# Checksums of durable rows.
#
# SQLite has checksums in its log alone, and treats what is behind a wrong one as never written. So
# each row of the journal has a checksum. That of a batch covers all batches before it, too, and a
# batch has the number of its frames for each entry.


_ADDED = {
    "batches": ("contents BLOB NOT NULL DEFAULT x''", "checksum INTEGER NOT NULL DEFAULT 0"),
    "frames": ("checksum INTEGER NOT NULL DEFAULT 0",),
    "positions": ("published INTEGER NOT NULL DEFAULT 0", "checksum INTEGER NOT NULL DEFAULT 0"),
    "publications": ("checksum INTEGER NOT NULL DEFAULT 0",),
    "pieces": ("checksum INTEGER NOT NULL DEFAULT 0",),
}


class Content(NamedTuple):
    """A batch's content for one entry: the number of its frames, and the sum of their checksums."""

    frames: int
    checksums: int


def row_checksum(*values: object) -> int:
    """Return the checksum of a row's values: numbers, texts, bytes and None."""
    checksum = 0
    for value in values:
        raw = value if isinstance(value, bytes) else repr(value).encode()
        checksum = zlib.crc32(raw, zlib.crc32(b"%d:" % len(raw), checksum))
    return checksum


def contents_of(frames: Iterable[tuple[str, int]]) -> dict[str, Content]:
    """Return a batch's content for each entry, given the entries and checksums of its frames."""
    found: dict[str, Content] = {}
    for entry, checksum in frames:
        count, checksums = found.get(entry, (0, 0))
        found[entry] = Content(count + 1, checksums + checksum)
    return found


def packed(contents: dict[str, Content]) -> bytes:
    """Encode contents."""
    return json.dumps(contents, sort_keys=True).encode() if contents else b""


def unpacked(contents: bytes) -> dict[str, Content]:
    """Decode contents whose checksum was right."""
    return {entry: Content(*each) for entry, each in json.loads(contents or b"{}").items()}


def damage(journal: object, what: str) -> StateError:
    """Return the error that names the damage, and the remedy."""
    return StateError(
        f"{journal} is damaged: {what}. Nothing was changed. Replace the whole state directory "
        "with a copy from before the damage"
    )


def add_checksums(db: sqlite3.Connection) -> None:
    """Add checksums to a journal of an earlier version."""
    for table, columns in _ADDED.items():
        there = {row[1] for row in db.execute(f"PRAGMA table_info({table})")}
        for column in columns:
            if column.split()[0] not in there:
                db.execute(f"ALTER TABLE {table} ADD COLUMN {column}")
    db.execute(
        "UPDATE positions SET published = coalesce("
        "(SELECT next FROM publications WHERE publications.entry = positions.entry), 0)"
    )
    db.execute("UPDATE positions SET checksum = row_checksum(entry, batch, published, snapshot)")
    db.execute("UPDATE publications SET checksum = row_checksum(entry, first, next, schema, bytes)")
    db.execute("UPDATE pieces SET checksum = row_checksum(entry, first, rows, payload)")
    _add_frame_checksums(db)
    checksum = 0
    for number, job, batch, winners in db.execute(
        "SELECT number, job, batch, winners FROM batches ORDER BY number"
    ).fetchall():
        frames = db.execute("SELECT entry, checksum FROM frames WHERE batch = ?", (number,))
        contents = packed(contents_of(frames))
        checksum = row_checksum(checksum, number, job, batch, winners, contents)
        db.execute(
            "UPDATE batches SET contents = ?, checksum = ? WHERE number = ?",
            (contents, checksum, number),
        )


def _add_frame_checksums(db: sqlite3.Connection) -> None:
    """Compute them as a commit does: over staging's checksum of a partition's payloads."""
    part, check = None, 0
    for (place,) in db.execute("SELECT number FROM frames ORDER BY number").fetchall():
        batch, entry, partition, row, layout, payload = db.execute(
            "SELECT batch, entry, partition, row, layout, payload FROM frames WHERE number = ?",
            (place,),
        ).fetchone()
        if part != (batch, entry, partition):
            part, check = (batch, entry, partition), 0
        check = payload_checksum(payload, check)
        checksum = row_checksum(batch, entry, partition, row, layout, check)
        db.execute("UPDATE frames SET checksum = ? WHERE number = ?", (checksum, place))


_MAGIC = b"callbrd1"
_NOTE = struct.Struct("!8sQIQQQ")
_CHECK = struct.Struct("!I")


class HighWater(NamedTuple):
    """Numbers that only grow, as they were at a durable transaction."""

    batches: int = 0
    checksum: int = 0
    """That of the last batch, and so of all."""
    positions: int = 0
    """The sum of all entries' positions."""
    published: int = 0
    """The number of rows that all entries ever published."""
    released: int = 0
    """The number of them that were released."""

    @classmethod
    def of(cls, db: sqlite3.Connection) -> Self:
        """Return the numbers of a journal. Raises sqlite3.Error."""
        last = db.execute("SELECT number, checksum FROM batches ORDER BY number DESC LIMIT 1")
        batches, checksum = last.fetchone() or (0, 0)
        (positions,) = db.execute("SELECT coalesce(sum(batch), 0) FROM positions").fetchone()
        published, released = db.execute(
            "SELECT coalesce(sum(next), 0), coalesce(sum(first), 0) FROM publications"
        ).fetchone()
        return cls(batches, checksum, positions, published, released)


class HighWaterMark:
    """The file with the numbers, next to the journal.

    It is overwritten in place when a transaction has passed its fsync. It has no own fsync, which
    would take as long as the transaction's. A killed process loses nothing of it. After a power cut
    it may be some seconds behind, but never ahead.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1

    def read(self) -> HighWater | None:
        """Return its numbers; None without a file. Raises StateError, OSError."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            magic, *numbers = _NOTE.unpack_from(raw)
            (check,) = _CHECK.unpack(raw[_NOTE.size :])
        except struct.error:
            magic, check = b"", 0
        if magic != _MAGIC or check != zlib.crc32(raw[: _NOTE.size]):
            raise StateError(
                f"{self.path} is damaged, the record of the journal's progress. Replace the whole "
                "state directory with a copy, or remove this file if you know that the journal "
                "is complete"
            )
        return HighWater(*numbers)

    def open(self) -> None:
        """Open or create the file. Raises OSError."""
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, water: HighWater) -> None:
        """Write the numbers. An error is only logged, as the batch itself is on disk already."""
        raw = _NOTE.pack(_MAGIC, *water)
        try:
            os.pwrite(self._file, raw + _CHECK.pack(zlib.crc32(raw)), 0)
        except OSError as error:
            log.error("the journal's mark cannot be written", path=str(self.path), error=error)

    def close(self) -> None:
        """Synchronise it with the disk, and close it."""
        file, self._file = self._file, -1
        if file >= 0:
            try:
                os.fsync(file)
            except OSError as error:
                log.error("the journal's mark cannot be written", path=str(self.path), error=error)
            finally:
                os.close(file)


Fetch = Callable[..., list[Any]]

WITH_CHECKSUMS = 4
"""The first version of the journal that has checksums."""


def check_journal(
    path: Path, noted: HighWater | None, make: Callable[[sqlite3.Connection], None]
) -> None:
    """Check all of a journal, except published rows, which are checked when they are read.

    `noted` is its known progress, and `make` makes its tables. Raises StateError if something is
    wrong or missing.

    It is opened read-only: otherwise SQLite would move the rest of a damaged log into the database,
    and remove the log.
    """
    size = path.stat().st_size if path.exists() else 0
    log = path.with_name(f"{path.name}-wal")
    if not size:
        if (noted is not None and any(noted)) or (log.exists() and log.stat().st_size):
            raise damage(path, "it is empty, and was not before")
        return
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as db:
            (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise damage(path, str(found).replace("\n", " "))
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version == WITH_CHECKSUMS:
                _Check(path, db).check(noted, make)
            elif not version and noted is not None and any(noted):
                raise damage(path, "it has no tables")
    except StateError:
        raise
    except (sqlite3.Error, ValueError, OverflowError) as error:
        raise damage(path, str(error)) from error


class _Check:
    """One check of a journal."""

    def __init__(self, path: Path, db: sqlite3.Connection) -> None:
        self._path = path
        self._db = db

    def check(self, noted: HighWater | None, make: Callable[[sqlite3.Connection], None]) -> None:
        self._check_tables(make)
        positions = self._check_positions()
        self._check_batches(positions, noted)
        self._check_publications()
        self._check_distance(noted)

    def _check_tables(self, make: Callable[[sqlite3.Connection], None]) -> None:
        columns = (
            "SELECT m.name, p.name FROM sqlite_master m, pragma_table_info(m.name) p"
            " WHERE m.type = 'table'"
        )
        with closing(sqlite3.connect(":memory:")) as made:
            make(made)
            missing = {*made.execute(columns)} - {*self._db.execute(columns)}
        if missing:
            names = sorted({table for table, _ in missing})
            raise damage(self._path, f"tables or columns of {names} are missing")

    def _check_positions(self) -> dict[str, int]:
        (last,) = self._db.execute("SELECT coalesce(max(number), 0) FROM batches").fetchone()
        positions = {}
        for entry, batch, published, snapshot, checksum in self._db.execute(
            "SELECT entry, batch, published, snapshot, checksum FROM positions"
        ):
            if checksum != row_checksum(entry, batch, published, snapshot):
                raise damage(self._path, f"the state of {entry!r} has another checksum")
            if not 0 <= batch <= last:
                raise damage(
                    self._path, f"{entry!r} has applied batch {batch}, but the last is {last}"
                )
            if published != self._one("SELECT next FROM publications WHERE entry = ?", entry):
                raise damage(
                    self._path, f"the published rows of {entry!r} are not those of its position"
                )
            positions[entry] = batch
        return positions

    def _check_batches(self, positions: dict[str, int], noted: HighWater | None) -> None:
        checksum, expected = 0, 1
        for number, job, batch, winners, contents, stored in self._db.execute(
            "SELECT number, job, batch, winners, contents, checksum FROM batches ORDER BY number"
        ):
            checksum = row_checksum(checksum, number, job, batch, winners, contents)
            if number != expected or checksum != stored:
                raise damage(self._path, f"batch {expected} is missing or has another checksum")
            if noted is not None and number == noted.batches and checksum != noted.checksum:
                raise damage(self._path, f"batch {number} is not the one that was noted")
            wanted = {
                entry: content
                for entry, content in unpacked(contents).items()
                if positions.get(entry, 0) < number
            }
            if wanted and wanted != contents_of(self._frames(number, wanted)):
                raise damage(self._path, f"rows of batch {number} are missing")
            expected += 1

    def _frames(self, number: int, wanted: dict[str, Content]) -> Iterator[tuple[str, int]]:
        def fetch(sql: str, *values: object) -> list[Any]:
            return self._db.execute(sql, values).fetchall()

        for entry in wanted:
            yield from (
                (entry, checksum) for _, checksum in frames_in(self._path, fetch, number, entry)
            )

    def _check_publications(self) -> None:
        for entry, first, end, schema, size, checksum in self._db.execute(
            "SELECT entry, first, next, schema, bytes, checksum FROM publications"
        ):
            if checksum != row_checksum(entry, first, end, schema, size):
                raise damage(self._path, f"the publication of {entry!r} has another checksum")
            noted = self._one("SELECT published FROM positions WHERE entry = ?", entry)
            at = None
            for begin, rows in self._db.execute(
                "SELECT first, rows FROM pieces WHERE entry = ? ORDER BY first", (entry,)
            ):
                if begin != (min(begin, first) if at is None else at):
                    break
                at = begin + rows
            if noted != end or (end if at is None else at) != end or (at is None and first < end):
                raise damage(self._path, f"published rows of {entry!r} are missing")

    def _check_distance(self, noted: HighWater | None) -> None:
        there = HighWater.of(self._db)
        for name, before, now in zip(HighWater._fields, noted or (), there, strict=False):
            if name != "checksum" and now < before:
                raise damage(
                    self._path,
                    f"it had {before} {name}, and has {now}: the end of its log is lost "
                    f"({self._path.name}-wal). To continue without it, remove "
                    f"{self._path.with_suffix('.mark').name}",
                )

    def _one(self, sql: str, entry: str) -> int:
        found = self._db.execute(sql, (entry,)).fetchone()
        return found[0] if found else 0


def frames_in(
    path: Path, fetch: Fetch, number: int, entry: str
) -> Iterator[tuple[JournalFrame, int]]:
    """Return the frames of a batch for an entry with their checksums, by partition and row.

    `fetch` returns the rows of a query. Raises StateError at a frame whose checksum is wrong.
    """
    places = fetch(
        "SELECT number FROM frames WHERE (batch, entry) = (?, ?) ORDER BY number", number, entry
    )
    part, check = None, 0
    for (place,) in places:
        partition, row, layout, payload, checksum = fetch(
            "SELECT partition, row, layout, payload, checksum FROM frames WHERE number = ?", place
        )[0]
        if partition != part:
            part, check = partition, 0
        check = payload_checksum(payload, check)
        if checksum != row_checksum(number, entry, partition, row, layout, check):
            raise damage(path, f"rows of batch {number} for {entry!r} have another checksum")
        yield JournalFrame(partition, row, Layout(layout), payload), checksum
