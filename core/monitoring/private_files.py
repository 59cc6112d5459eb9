"""Files that only their owner may read, opened without following symbolic links."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


def private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file, as the `opener=` of `open()`. Only the user may read and write a new one.

    Raises OSError, also for a symbolic link.
    """
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def new_file(path: Path) -> BinaryIO:
    """Open a new file, after removing an old one of that name. Raises OSError."""
    path.unlink(missing_ok=True)
    return open(path, "xb", opener=private)


def read_file(path: Path) -> bytes:
    """Return a file's contents. Raises OSError, also for a pipe, where a read could block."""
    with open(path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{str(path)!r} is not a regular file")
        return file.read()
