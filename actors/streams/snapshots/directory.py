"""A directory of snapshots; a run resumes from the newest."""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.handles import public_names
from callboard.core.log import log
from callboard.core.monitoring.private_files import private, read_file
from callboard.streams.errors import RunError, SnapshotError
from callboard.streams.snapshots.snapshot import Snapshot, state_codec

if TYPE_CHECKING:
    from callboard.remote.wire.codec import Types

_KEPT = 2
_SUFFIX = ".snapshot"


class SnapshotStore:
    """A directory with the last two snapshots of a run, created with the first one.

    `system.run(graph, restore=SnapshotStore(directory, every=10))` continues from the newest intact
    snapshot, or starts from the beginning without one. Only one run at a time may use the
    directory.

    Args:
        directory: Its path.
        every: The number of seconds after which the run writes a snapshot, on a separate thread. It
            also writes one at each `run.snapshot()`, and by default only then.
        types: The classes of rows and states: dataclasses, enumerations, NamedTuples and
            exceptions, as a list, or as a dict by name.

    Raises ConfigError for other values.
    """

    __dir__ = public_names

    def __init__(
        self,
        directory: str | PathLike[str],
        *,
        every: float | None = None,
        types: Types = (),
    ) -> None:
        self.directory = Path(directory)
        self.every = every
        if every is not None:
            self.every = checks.seconds("every", every, zero=False, error=ConfigError)
        self.codec = state_codec(types)
        self._lock = threading.RLock()  # a run that the garbage collector ends lets go at any time
        self._file: int | None = None  # which says that a run has the directory

    def _paths(self) -> list[Path]:
        """Return the files of snapshots, the newest first."""
        found = [path for path in self.directory.glob(f"*{_SUFFIX}") if path.stem.isdecimal()]
        return sorted(found, key=_number_of, reverse=True)

    def _newest(self) -> Snapshot | None:
        """Read the newest whole snapshot; None: there are no snapshots. Broken ones are logged.

        Raises SnapshotError if all are broken, or the newest is of a later version.
        """
        broken = ""
        for path in self._paths():
            try:
                return Snapshot._read(read_file(path), self.codec, f"the file {str(path)!r}")
            except (SnapshotError, OSError) as error:
                if isinstance(error, SnapshotError) and error._is_of_a_later_version:
                    raise
                broken = broken or str(error)
                log.warning("a snapshot is broken", path=str(path), error=str(error))
        if broken:
            raise SnapshotError(f"no snapshot in {str(self.directory)!r} is whole: {broken}")
        return None

    # --- for a run --------------------------------------------------------------------------------

    def _open(self) -> None:
        """Take the directory; a new one is for its user alone.

        Raises RunError if another run has it, and OSError.
        """
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._lock:
            file = private(self.directory / "lock", os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                raise RunError(
                    f"another run has the snapshots in {str(self.directory)!r}: finish or cancel it"
                ) from None
            except BaseException:
                os.close(file)
                raise
            self._file = file

    def _close(self) -> None:
        """Let another run have it, once no snapshot is being written."""
        with self._lock:
            file, self._file = self._file, None
            if file is not None:
                fcntl.flock(file, fcntl.LOCK_UN)  # a forked process may have the file open as well
                os.close(file)

    def _save(self, snapshot: Snapshot) -> None:
        """Write one, and remove those before the last two. Nothing, if the run has ended."""
        with self._lock:
            if self._file is None:
                return
            paths = self._paths()
            number = _number_of(paths[0]) + 1 if paths else 1
            snapshot.save(self.directory / f"{number:012}{_SUFFIX}")
            for path in paths[_KEPT - 1 :]:
                with suppress(IsADirectoryError):  # a directory of someone else
                    path.unlink(missing_ok=True)


def _number_of(path: Path) -> int:
    return int(path.stem)


class Periodic:
    """Calls `act()` periodically on a thread, until it is stopped or that returns False.

    The thread does not keep the process alive.
    """

    def __init__(self, name: str, seconds: float, act: Callable[[], bool]) -> None:
        self._stopped = threading.Event()
        self._seconds = seconds
        self._act = act
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def _run(self) -> None:
        while not self._stopped.wait(self._seconds):
            if not self._act():
                return

    def stop(self) -> None:
        """Call no more. Does not wait for the call that is being made."""
        self._stopped.set()
