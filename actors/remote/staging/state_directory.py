"""A directory that one server at a time keeps its state in."""

from __future__ import annotations

import fcntl
import os
import shutil
from pathlib import Path

from callboard.remote.errors import StateError
from callboard.remote.shard import Shard


class StateDirectory:
    """`journal.db` is for good; what is in `staged/` goes when the next server starts.

    `shard` says which of several servers the state is of; without it, it is of one alone.
    """

    def __init__(self, path: str | os.PathLike[str], shard: Shard | None = None) -> None:
        """Make the directory if there is none, and lock it. Raises StateError, also if the state is
        another shard's: it would lack rows, and have those of others.
        """
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
            self._check_shard(shard)
        except BlockingIOError:
            os.close(self._lock)
            raise StateError(f"another server uses the state directory {self.path}") from None
        except OSError as error:
            os.close(self._lock)
            raise StateError(f"the state directory {self.path} cannot be used: {error}") from error
        except BaseException:
            os.close(self._lock)
            raise

    def _check_shard(self, shard: Shard | None) -> None:
        """Compare it with that of the state, or note it down where there is no state yet."""
        note, wanted = self.path / "shard", "" if shard is None else str(shard)
        if self.journal.exists():
            noted = note.read_text(errors="replace") if note.exists() else ""
            if noted != wanted:
                has = f"shard {noted}" if noted else "a server without --shard"
                what = f"shard {wanted}" if wanted else "one without it"
                raise StateError(f"the state directory {self.path} is of {has}, not of {what}")
        elif shard is not None:
            draft = self.path / "shard.new"
            draft.write_text(wanted)
            with open(draft) as written:
                os.fsync(written.fileno())
            draft.replace(note)
            self._sync(self.path)
        else:
            note.unlink(missing_ok=True)

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
