"""The snapshots of one run: the one that it goes on with, and those that it writes."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from os import PathLike
from typing import TYPE_CHECKING, Any

from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.streams.planning.plan import Plan
from callboard.streams.snapshots.directory import Periodic, SnapshotStore
from callboard.streams.snapshots.snapshot import Snapshot
from callboard.streams.snapshots.state_codec import state_codec
from callboard.system import ActorSystem

if TYPE_CHECKING:
    from callboard.remote.wire.codec import Codec, Types


class Recovery:
    """The side of a run that has to do with snapshots, by its option `restore`."""

    def __init__(self, restore: Any, plan: Plan, system: ActorSystem) -> None:
        """Read the snapshot, and check that it is one of this graph.

        Raises SnapshotError, ConfigError, OSError, and RunError for a directory that another run
        has.
        """
        self.saved = 0
        """How many rounds the last one that was written is of."""
        self.restored: Snapshot | None = None
        """The one that the run goes on with, if there is one."""
        self._system = system
        self._directory: SnapshotStore | None = None
        self._periodic: Periodic | None = None
        self._codec: Codec | None = None
        self._saving = threading.Lock()
        if isinstance(restore, SnapshotStore):
            if restore.every is not None and system._runtime.manual:
                raise ConfigError(
                    f"every={restore.every:g} is in seconds that pass by themselves, and in a "
                    "manual system none do: call run.snapshot()"
                )
            restore.open()
            self._directory, self._codec = restore, restore.codec
        try:
            if self._directory is not None:
                self.restored = self._directory.newest()
            elif isinstance(restore, Snapshot):
                self.restored = restore
            elif isinstance(restore, str | PathLike):
                if os.path.isdir(restore):
                    path = os.fspath(restore)
                    raise ConfigError(f"{path!r} is a directory: restore=SnapshotStore({path!r})")
                self.restored = Snapshot.load(restore)
            elif restore is not None:
                raise ConfigError(
                    f"restore is a Snapshot, SnapshotStore, or a file, not {safe_repr(restore)}"
                )
            if self.restored is not None:
                self.restored.check(plan)
        except BaseException:
            self.end()
            raise
        if self.restored is not None:
            self._codec = self.restored.codec

    def codec_of(self, types: Types) -> Codec:
        """Return the encoding of states: of these types, or as in the snapshots before."""
        if types:
            return state_codec(types)
        if self._codec is None:
            self._codec = state_codec()
        return self._codec

    def begin(self, act: Callable[[], bool]) -> bool:
        """Have `act()` take snapshots, if some are wanted every so many seconds; whether so."""
        directory = self._directory
        if directory is None or directory.every is None:
            return False
        self._periodic = Periodic(f"{self._system.name}-snapshots", directory.every, act)
        return True

    def save(self, snapshot: Snapshot, rounds: int) -> None:
        """Write a snapshot of so many rounds, if the run has a directory, and no later one there.

        Several threads may have taken some, and the first may be encoded last.
        """
        with self._saving:
            directory = self._directory
            if directory is not None and rounds >= self.saved:
                directory.save(snapshot)
                self.saved = rounds

    # For a run that nobody ended. At exit the module may be empty, and the thread that takes
    # snapshots stays in its locks for ever.
    def __del__(self, is_exiting: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_exiting():
            self.end()

    def end(self) -> None:
        """Take no more, and let the directory go."""
        periodic, self._periodic = self._periodic, None
        if periodic is not None:
            periodic.stop()
        directory, self._directory = self._directory, None  # once: another run may have it then
        if directory is not None:
            directory.close()
