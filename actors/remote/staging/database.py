"""A SQLite database that threads share: what a transaction has committed is on disk.

With a write-ahead log (https://www.sqlite.org/wal.html) and `synchronous=FULL` it has passed an
fsync.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from callboard.remote.errors import StateError

# Rows are large, and soon deleted: so pages are large, and are not overwritten with zeros, as some
# builds of SQLite do without being told to; most never leave the log for the database.
_SETTINGS = (
    "page_size = 16384",
    "secure_delete = OFF",
    "journal_mode = WAL",
    "wal_autocheckpoint = 2048",
    "synchronous = FULL",
)


class Database:
    """One connection, that one thread uses at a time. Safe in every thread."""

    def __init__(self, path: Path, versions: Sequence[str]) -> None:
        """Open it, or make it, and bring it up to date: `versions` are what SQL each one adds.

        Raises StateError.
        """
        self._lock = Lock()
        try:
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise StateError(f"{path} cannot be opened: {error}") from error
        try:
            self._prepare(path, versions)
        except sqlite3.Error as error:
            self._db.close()
            raise StateError(f"{path} cannot be used: {error}") from error
        except BaseException:
            self._db.close()
            raise

    def _prepare(self, path: Path, versions: Sequence[str]) -> None:
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        latest = len(versions)
        if version > latest:
            raise StateError(
                f"{path} is of version {version}, from a later callboard; this one knows {latest}"
            )
        for setting in _SETTINGS:
            self._db.execute(f"PRAGMA {setting}")
        if version < latest:
            added = " ".join(versions[version:])
            self._db.executescript(f"BEGIN; {added} PRAGMA user_version = {latest}; COMMIT")

    def close(self) -> None:
        """Close it. What is done with it afterwards raises sqlite3.ProgrammingError."""
        with self._lock:
            self._db.close()

    @contextmanager
    def _transaction(self, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Have all done or nothing. Raises sqlite3.Error.

        One that is not `durable` survives a crash of the process, and one of the machine once a
        later one that is durable has come to its end: the log is written in order.
        """
        with self._lock:
            self._db.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
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

    def _number(self, sql: str, *values: object) -> int | None:
        number: int | None = self._rows(sql, *values)[0][0]
        return number
