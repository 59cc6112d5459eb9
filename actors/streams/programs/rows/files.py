"""Files as sinks."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import stat
from contextlib import suppress
from os import PathLike
from typing import Any, TextIO

from callboard.core.text import safe_repr
from callboard.streams.errors import RunError
from callboard.streams.programs.rows.sinks import Call


def to_file(name: str, path: str | PathLike[str], **options: Any) -> Call:
    """Make the program that writes rows to a file.

    Opens the file, which close() closes. Its old content is gone when the run has its first rows,
    so a run that is refused leaves it as it was.
    """
    file = _open(path)

    def empty() -> None:
        if _is_regular(file.fileno()):
            os.ftruncate(file.fileno(), 0)

    def close() -> None:
        try:
            file.flush()
        finally:
            with suppress(OSError):  # a file system may have no locks
                fcntl.flock(file, fcntl.LOCK_UN)  # a forked process may have the file open as well
            file.close()

    def write(row: Any) -> None:
        file.write(f"{line_of(row)}\n")

    return Call(name, write, empty, file.flush, close, **options)


def _open(path: str | PathLike[str]) -> TextIO:
    """Open a file for one writer at a time. Raises RunError if there is another."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o666)
    try:
        if _is_regular(descriptor):  # a terminal, say, has room for many
            _lock(descriptor, path)
        return open(descriptor, "w", encoding="utf-8")
    except BaseException:
        os.close(descriptor)
        raise


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
    return row if isinstance(row, str) else json.dumps(row, default=_plain)


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    raise TypeError(f"{safe_repr(value)} is neither a string nor can it be written as JSON")
