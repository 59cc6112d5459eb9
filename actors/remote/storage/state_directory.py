"""The state directory, which one server at a time uses."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import time
from pathlib import Path

from callboard.core.log import log
from callboard.remote.errors import StateError
from callboard.remote.protocol.shard import Shard
from callboard.remote.sockets.forked import close_in_children

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_LOCK_WAIT = 0.2  # seconds in which a forked child releases the lock


class StateDirectory:
    """A directory with a durable `journal.db`, and with `staged/`, which is emptied at a start.

    Only its user can access its files: a reader of `journal.db` could read the rows, and a lock on
    it, or on a file beside it, would hold up the server. `shard` names the server among several
    that the state belongs to.
    """

    def __init__(self, path: str | os.PathLike[str], shard: Shard | None = None) -> None:
        """Create the directory if there is none, lock it, and close it to other users.

        Raises StateError, also if the state belongs to another shard, which has other rows, or to
        another user.
        """
        self.path = Path(path).absolute()
        self.journal = self.path / "journal.db"
        self.staged = self.path / "staged"
        try:
            self.path.mkdir(mode=0o700, exist_ok=True)
            self._close_to_others()
            self._sync(self.path.parent)
            self._lock = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"the state directory {self.path} cannot be used: {error}") from error
        close_in_children(self)
        try:
            self._keep_others_out()
            shutil.rmtree(self.staged, ignore_errors=True)
            self.staged.mkdir(mode=0o700, exist_ok=True)
            self._check_shard(shard)
        except BlockingIOError:
            self.close()
            raise StateError(f"another server uses the state directory {self.path}") from None
        except OSError as error:
            self.close()
            raise StateError(f"the state directory {self.path} cannot be used: {error}") from error
        except BaseException:
            self.close()
            raise

    def _keep_others_out(self) -> None:
        """Take the lock, or raise BlockingIOError.

        A child that a server's process has just forked holds that server's lock until it runs, so
        this retries a moment later.
        """
        last = time.monotonic() + _LOCK_WAIT
        while True:
            try:
                return fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= last:
                    raise
                time.sleep(_LOCK_WAIT / 20)

    def _close_to_others(self) -> None:
        """Prevent others from reading, locking or replacing the files.

        Files that others have open stay open for them. Raises StateError, OSError.
        """
        self._close(self.path, stat.S_IWGRP | stat.S_IWOTH)
        for name in ("lock", "shard", "shard.new", "staged"):
            self._close(self.path / name, _OTHERS)
        for name in ("", "-wal", "-shm", "-journal"):
            self._close(self.path / f"{self.journal.name}{name}", _OTHERS)
        self._close(self.journal.with_suffix(".mark"), _OTHERS)

    def _close(self, path: Path, forbidden: int) -> None:
        try:
            found = path.stat()
        except FileNotFoundError:
            return
        if found.st_uid != os.geteuid():
            raise StateError(
                f"{path} belongs to the user {found.st_uid}, but this server runs as the user "
                f"{os.geteuid()}"
            )
        if not found.st_mode & forbidden:
            return
        if found.st_mode & stat.S_ISVTX:
            raise StateError(f"{path} is a directory that many users share, such as /tmp")
        mode = stat.S_IMODE(found.st_mode) & ~forbidden
        log.warning("state directory closed to other users", path=str(path), mode=f"{mode:04o}")
        path.chmod(mode)

    def _check_shard(self, shard: Shard | None) -> None:
        """Compare it with that of the state, or write it if there is no state yet."""
        note, wanted = self.path / "shard", "" if shard is None else str(shard)
        if self.journal.exists():
            noted = note.read_text(errors="replace") if note.exists() else ""
            if noted != wanted:
                has = f"shard {noted}" if noted else "a server without --shard"
                what = f"shard {wanted}" if wanted else "one without it"
                raise StateError(f"the state directory {self.path} belongs to {has}, not to {what}")
        elif shard is not None:
            draft = self.path / "shard.new"
            draft.touch(0o600)
            with draft.open("w") as written:
                written.write(wanted)
                written.flush()
                os.fsync(written.fileno())
            draft.replace(note)
            self._sync(self.path)
        else:
            note.unlink(missing_ok=True)

    def close(self) -> None:
        """Release it for the next server."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)

    def _close_in_child(self) -> None:
        """In a forked child: close the copy of the lock, which the parent keeps."""
        self.close()

    def _sync(self, folder: Path) -> None:
        """Synchronise a folder's entries with the disk."""
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
