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
from callboard.remote.protocol.staged_rows import Layout, checksum
from callboard.remote.storage.parts import JournalFrame

# Checksums of durable rows.
#
# SQLite has checksums in its log alone, and takes what is behind a wrong one for never written. So
# each row of the journal has a seal, batches have one that goes over all before them as well, and
# say how many frames they have for each entry.


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


_MAGIC = b"callbrd1"
_NOTE = struct.Struct("!8sQIQQQ")
_CHECK = struct.Struct("!I")


class HighWater(NamedTuple):
    """Numbers that only grow, as of a transaction that is on disk."""

    batches: int = 0
    seal: int = 0
    """That of the last batch, and so of all."""
    positions: int = 0
    """The sum of all entries' positions."""
    published: int = 0
    """How many rows were ever published, of all entries."""
    released: int = 0
    """How many of them were released."""

    @classmethod
    def of(cls, db: sqlite3.Connection) -> Self:
        """Return how far a journal has come. Raises sqlite3.Error."""
        last = db.execute("SELECT number, seal FROM batches ORDER BY number DESC LIMIT 1")
        batches, seal = last.fetchone() or (0, 0)
        (positions,) = db.execute("SELECT coalesce(sum(batch), 0) FROM positions").fetchone()
        published, released = db.execute(
            "SELECT coalesce(sum(next), 0), coalesce(sum(first), 0) FROM publications"
        ).fetchone()
        return cls(batches, seal, positions, published, released)


class HighWaterMark:
    """The file that has it, beside the journal.

    It is written in place when a transaction has passed its fsync. It has no fsync of its own,
    which would take as long as the transaction's. A killed process loses nothing of it, and after a
    power cut it may be some seconds behind. It is never ahead.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = -1

    def read(self) -> HighWater | None:
        """Return what is noted; None without a file. Raises StateError, OSError."""
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
                f"{self.path} is damaged, which says how far the journal had come. Put a copy of "
                "the whole state directory in its place, or remove this file if you know that "
                "the journal is whole"
            )
        return HighWater(*numbers)

    def open(self) -> None:
        """Make the file if there is none. Raises OSError."""
        self._file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def write(self, water: HighWater) -> None:
        """Note it down. An error is only logged, because the batch itself is on disk already."""
        raw = _NOTE.pack(_MAGIC, *water)
        try:
            os.pwrite(self._file, raw + _CHECK.pack(zlib.crc32(raw)), 0)
        except OSError as error:
            log.error("the journal's mark cannot be written", path=str(self.path), error=error)

    def close(self) -> None:
        """Have it on disk, and close it."""
        file, self._file = self._file, -1
        if file >= 0:
            try:
                os.fsync(file)
            except OSError as error:
                log.error("the journal's mark cannot be written", path=str(self.path), error=error)
            finally:
                os.close(file)


Fetch = Callable[..., list[Any]]

SEALED = 4
"""The first version of the journal that has seals."""


def check_journal(
    path: Path, noted: HighWater | None, make: Callable[[sqlite3.Connection], None]
) -> None:
    """Read all of a journal; the seals of published rows are checked when they are read.

    `noted` is how far it had come, as far as that is known, and `make` makes its tables. Raises
    StateError if something is wrong or missing.

    It is opened to be read alone: SQLite would else put what a damaged log still has into the
    database, and remove the log.
    """
    size = path.stat().st_size if path.exists() else 0
    log = path.with_name(f"{path.name}-wal")
    if not size:
        if (noted is not None and any(noted)) or (log.exists() and log.stat().st_size):
            raise damage(path, "it is empty, and it was not")
        return
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as db:
            (found,) = db.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise damage(path, str(found).replace("\n", " "))
            (version,) = db.execute("PRAGMA user_version").fetchone()
            if version == SEALED:
                _Check(path, db).check(noted, make)
            elif not version and noted is not None and any(noted):
                raise damage(path, "it has no tables")
    except StateError:
        raise
    except (sqlite3.Error, ValueError, OverflowError) as error:
        raise damage(path, str(error)) from error


class _Check:
    """The journal in one reading."""

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
        for entry, batch, published, snapshot, seal in self._db.execute(
            "SELECT entry, batch, published, snapshot, seal FROM positions"
        ):
            if seal != seal_of(entry, batch, published, snapshot):
                raise damage(self._path, f"the state of {entry!r} has another checksum")
            if not 0 <= batch <= last:
                raise damage(
                    self._path, f"{entry!r} has applied batch {batch}, and the last is {last}"
                )
            if published != self._one("SELECT next FROM publications WHERE entry = ?", entry):
                raise damage(self._path, f"the published rows of {entry!r} are not those it noted")
            positions[entry] = batch
        return positions

    def _check_batches(self, positions: dict[str, int], noted: HighWater | None) -> None:
        seal, expected = 0, 1
        for number, job, batch, winners, contents, sealed in self._db.execute(
            "SELECT number, job, batch, winners, contents, seal FROM batches ORDER BY number"
        ):
            seal = seal_of(seal, number, job, batch, winners, contents)
            if number != expected or seal != sealed:
                raise damage(self._path, f"batch {expected} is missing or has another checksum")
            if noted is not None and number == noted.batches and seal != noted.seal:
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
            yield from ((entry, seal) for _, seal in frames_in(self._path, fetch, number, entry))

    def _check_publications(self) -> None:
        for entry, first, end, schema, size, seal in self._db.execute(
            "SELECT entry, first, next, schema, bytes, seal FROM publications"
        ):
            if seal != seal_of(entry, first, end, schema, size):
                raise damage(self._path, f"what {entry!r} has published has another checksum")
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
            if name != "seal" and now < before:
                raise damage(
                    self._path,
                    f"it had come to {before} {name}, and has {now}: the end of its log is lost "
                    f"({self._path.name}-wal). To go on without it, remove "
                    f"{self._path.with_suffix('.mark').name}",
                )

    def _one(self, sql: str, entry: str) -> int:
        found = self._db.execute(sql, (entry,)).fetchone()
        return found[0] if found else 0


def frames_in(
    path: Path, fetch: Fetch, number: int, entry: str
) -> Iterator[tuple[JournalFrame, int]]:
    """Return the frames of a batch for an entry with their seals, by partition and row.

    `fetch` returns the rows of a query. Raises StateError at a frame whose seal is wrong.
    """
    places = fetch(
        "SELECT number FROM frames WHERE (batch, entry) = (?, ?) ORDER BY number", number, entry
    )
    part, check = None, 0
    for (place,) in places:
        partition, row, layout, payload, seal = fetch(
            "SELECT partition, row, layout, payload, seal FROM frames WHERE number = ?", place
        )[0]
        if partition != part:
            part, check = partition, 0
        check = checksum(payload, check)
        if seal != seal_of(number, entry, partition, row, layout, check):
            raise damage(path, f"rows of batch {number} for {entry!r} have another checksum")
        yield JournalFrame(partition, row, Layout(layout), payload), seal
