"""A journal is looked through before it is used: what is damaged is said, and left as it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from callboard.remote.errors import StateError
from callboard.remote.protocol.staged_rows import Layout, checksum
from callboard.remote.storage.fresh_frames import JournalFrame
from callboard.remote.storage.high_water import HighWater
from callboard.remote.storage.seals import Content, contents_of, damage, seal_of, unpacked

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
