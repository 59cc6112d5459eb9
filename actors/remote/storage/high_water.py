"""How far a journal had come, noted apart from it: so a lost end of its log is seen."""

from __future__ import annotations

import os
import sqlite3
import struct
import zlib
from pathlib import Path
from typing import NamedTuple, Self

from callboard.core.log import log
from callboard.remote.errors import StateError

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
