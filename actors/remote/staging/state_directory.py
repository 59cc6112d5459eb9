"""A directory that one server at a time keeps its state in."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from callboard.remote.errors import StateError


class StateDirectory:
    """`journal.db` is for good; what is in `staged/` goes when the next server starts."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Make the directory if there is none, and lock it. Raises StateError."""
        self.path = Path(path)
        self.journal = self.path / "journal.db"
        self.staged = self.path / "staged"
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            self._sync(self.path.parent)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"the state directory {self.path} cannot be used: {error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(self.staged, ignore_errors=True)
            self.staged.mkdir(mode=0o700, exist_ok=True)
        except BlockingIOError:
            os.close(self._lock)
            raise StateError(f"another server uses the state directory {self.path}") from None
        except OSError as error:
            os.close(self._lock)
            raise StateError(f"the state directory {self.path} cannot be used: {error}") from error

    def close(self) -> None:
        """Let the next server have it."""
        os.close(self._lock)

    def _sync(self, folder: Path) -> None:
        """Have the file system note that a directory is in it."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
