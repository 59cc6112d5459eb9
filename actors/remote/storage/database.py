"""A SQLite database that threads share, with durable transactions.

With a write-ahead log (https://www.sqlite.org/wal.html) and `synchronous=FULL`, a committed
transaction has passed an fsync.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

from callboard.remote.errors import StateError

# The locking mode is the normal one. With an exclusive lock, a forked child that closes its copy
# would believe that it is the last user of the log, and remove it. File modes keep others out.
# Rows are large, and soon deleted. So pages are large, and are not overwritten with zeros, as some
# builds of SQLite do by default. Most never move from the log to the database.
_SETTINGS = (
    "page_size = 16384",
    "secure_delete = OFF",
    "journal_mode = WAL",
    "wal_autocheckpoint = 2048",
    "synchronous = FULL",
)


_PASSING = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
}

Version = str | Callable[[sqlite3.Connection], None]
"""A step that brings a database up by one version: SQL, or a function."""


class Database:
    """One connection, used by one thread at a time. Safe in every thread."""

    def __init__(
        self,
        path: Path,
        versions: Sequence[Version],
        functions: Mapping[str, Callable[..., int]],
    ) -> None:
        """Open or create it, and migrate it: `versions` are the steps.

        Only its user can access its file, and those that SQLite creates beside it, which get its
        mode. SQL may call `functions`. Raises StateError.
        """
        self._lock = Lock()
        try:
            if not path.exists():
                os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        except (sqlite3.Error, OSError) as error:
            raise StateError(f"{path} cannot be opened: {error}") from error
        try:
            _checked_version(self._db, path, len(versions))  # a later one is left as it is
            for setting in _SETTINGS:
                self._db.execute(f"PRAGMA {setting}")
            bring_up(self._db, path, versions, functions)
        except sqlite3.Error as error:
            self._db.close()
            raise StateError(f"{path} cannot be used: {error}") from error
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Close it. Later calls raise sqlite3.ProgrammingError."""
        with self._lock:
            self._db.close()

    @contextmanager
    def _transaction(self, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """Run a transaction. Raises sqlite3.Error.

        One that is not `durable` survives a crash of the process. It survives a crash of the
        machine once a later durable one has ended, because the log is written in order.
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
            if durable:
                self._note_durable()

    def _note_durable(self) -> None:
        """Note that a transaction has passed its fsync; no other has begun since."""

    def _rows(self, sql: str, *values: object) -> list[Any]:
        with self._lock:
            return self._db.execute(sql, values).fetchall()

    def _number(self, sql: str, *values: object) -> int | None:
        number: int | None = self._rows(sql, *values)[0][0]
        return number


def bring_up(
    db: sqlite3.Connection,
    path: Path,
    versions: Sequence[Version],
    functions: Mapping[str, Callable[..., int]],
) -> None:
    """Migrate a database to the last version. Raises sqlite3.Error, StateError."""
    for name, function in functions.items():
        db.create_function(name, -1, function)
    latest = len(versions)
    version = _checked_version(db, path, latest)
    if version == latest:
        return
    db.execute("BEGIN IMMEDIATE")
    try:
        for added in versions[version:]:
            if callable(added):
                added(db)
                continue
            for statement in added.split(";"):
                db.execute(statement)
        db.execute(f"PRAGMA user_version = {latest}")
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _checked_version(db: sqlite3.Connection, path: Path, latest: int) -> int:
    version: int = db.execute("PRAGMA user_version").fetchone()[0]
    if version > latest:
        raise StateError(
            f"{path} has version {version}, of a later callboard; this one knows {latest}"
        )
    return version


def may_pass(error: BaseException) -> bool:
    """Tell whether a retry may succeed: the disk is full, or the database is locked."""
    code = getattr(error, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _PASSING
