"""Files that only their owner may read, opened without following links of others."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO


def private(path: str | os.PathLike[str], flags: int) -> int:
    """Open a file, as the `opener=` of `open()`: a new one is for its user alone.

    Raises OSError, also for a symbolic link.
    """
    return os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def new_file(path: Path) -> BinaryIO:
    """Open a file that is not there yet, in the place of one that may be. Raises OSError."""
    path.unlink(missing_ok=True)
    return open(path, "xb", opener=private)


def read_file(path: Path) -> bytes:
    """Return what is in a file. Raises OSError, also for a pipe, which would be waited for."""
    with open(path, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(f"{str(path)!r} is no regular file")
        return file.read()
