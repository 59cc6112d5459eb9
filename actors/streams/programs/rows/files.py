"""Files as sinks."""

from __future__ import annotations

import dataclasses
import fcntl
import os
import stat
from contextlib import suppress
from os import PathLike
from typing import Any, Literal, TextIO

from callboard.core.text import json_text, safe_repr
from callboard.streams.errors import RunError
from callboard.streams.programs.rows.sinks import Call

Mode = Literal["w", "a", "x"]


def to_file(
    name: str, path: str | PathLike[str], mode: Mode = "w", flush: bool = False, **options: Any
) -> Call:
    """Make the program that writes rows to a file.

    Opens the file, which close() closes. A run that is refused leaves it as it was: its old content
    is gone when the run has its first rows, and a new file is gone if it has none.
    """
    file, real, is_new = _open(path, mode)
    lines = _Lines(file, path, mode)

    def close() -> None:
        try:
            file.flush()
        finally:
            if is_new and not lines.is_begun and _is_at(real, file.fileno()):
                with suppress(OSError):
                    os.unlink(real)
            with suppress(OSError):  # a file system may have no locks
                fcntl.flock(file, fcntl.LOCK_UN)  # a forked process may have the file open as well
            file.close()

    def write(row: Any) -> None:
        file.write(f"{line_of(row)}\n")

    after = file.flush if flush else None
    return Call(name, write, lines.begin, file.flush, close, after, lines, **options)


class _Lines:
    """The place in a file at which a run's lines begin, and the end of those written so far."""

    def __init__(self, file: TextIO, path: str | PathLike[str], mode: Mode) -> None:
        self.is_begun = False
        self._file, self._path, self._mode = file, path, mode
        self._has_length = _is_regular(file.fileno())

    def begin(self) -> None:
        """Begin the lines, unless the run continues those that are there already."""
        if not self.is_begun and self._has_length:
            if self._mode == "w":
                os.ftruncate(self._file.fileno(), 0)
            self._end_line()
        self.is_begun = True

    def _end_line(self) -> None:
        """End the last line of the file, so that the next row begins a new one."""
        with suppress(OSError), open(self._path, "rb") as there:  # it may not be for us to read
            there.seek(-1, os.SEEK_END)  # OSError: it is empty
            if there.read(1) != b"\n":
                self._file.write("\n")

    def note(self) -> int | None:
        """Return how long the file is; None: it has no length, or that is nothing of the run's."""
        if not self._has_length or (self._mode == "w" and not self.is_begun):
            return None
        self._file.flush()
        return os.fstat(self._file.fileno()).st_size

    def go_back(self, length: int | None) -> None:
        """Truncate the file to a length, and continue there. ValueError: it is shorter."""
        if length is None:
            return
        there = os.fstat(self._file.fileno()).st_size
        if there < length:
            raise ValueError(
                f"the file {os.fspath(self._path)!r} has {there:,} bytes, but had {length:,} at "
                "the snapshot"
            )
        os.ftruncate(self._file.fileno(), length)
        self._file.seek(length)
        self._end_line()  # of others, if no row of the run was there
        self.is_begun = True

    def sync(self) -> None:
        """Make the lines that were noted durable on disk."""
        if self._has_length:
            os.fsync(self._file.fileno())


def _open(path: str | PathLike[str], mode: Mode) -> tuple[TextIO, str, bool]:
    """Open a file for one writer at a time; where it really is, and whether it was not there.

    Raises RunError if there is another writer, and FileExistsError where `mode` forbids a file.
    """
    while True:
        descriptor, is_new = _opened(path, mode)
        try:
            real = os.path.realpath(path)
            if not _is_regular(descriptor):  # a terminal, say, has room for many
                return open(descriptor, "w", encoding="utf-8"), real, False
            _lock(descriptor, path)
            if _is_at(os.fspath(path), descriptor):  # a file without a name is at /dev/fd, too
                return open(descriptor, "w", encoding="utf-8"), real, is_new
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # its run was refused by now, and removed it


def _opened(path: str | PathLike[str], mode: Mode) -> tuple[int, bool]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_APPEND if mode == "a" else 0)
    try:
        return os.open(path, flags | os.O_EXCL, 0o666), True
    except FileExistsError:
        if mode == "x":
            raise
    return os.open(path, flags, 0o666), False


def _is_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False


def _is_regular(descriptor: int) -> bool:
    return stat.S_ISREG(os.fstat(descriptor).st_mode)


def _lock(descriptor: int, path: str | PathLike[str]) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RunError(
            f"the file {os.fspath(path)!r} is being written by another run, or by another sink of "
            "this one: finish or cancel that run first"
        ) from None
    except OSError:  # a file system may have no locks
        pass


def line_of(row: Any) -> str:
    """Write a row as a line."""
    return row if isinstance(row, str) else json_text(row, _plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{safe_repr(value)} is neither a string nor can it be written as JSON")
