"""Snapshots of a run: the one that it goes on with, and those that are taken of it."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, Protocol

from callboard.core.errors import ConfigError
from callboard.core.log import log
from callboard.core.text import safe_repr
from callboard.streams.errors import RunTimeout
from callboard.streams.planning.plan import Plan
from callboard.streams.running.call_lock import CallLock, LockHold
from callboard.streams.running.flow import GraphFlow
from callboard.streams.running.lifecycle import Lifecycle, RunState
from callboard.streams.snapshots.cut import Cut
from callboard.streams.snapshots.directory import Periodic, SnapshotStore
from callboard.streams.snapshots.snapshot import Snapshot, state_codec
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
                self.restored._check(plan)
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


class RunWithState(Protocol):
    """A run, as those who take snapshots of it see it."""

    flow: GraphFlow
    life: Lifecycle
    lock: CallLock
    snapshots: Snapshotting

    def snapshot(self) -> Snapshot:
        """Take a snapshot."""

    def cut(self, codec: Codec) -> Cut:
        """Take the states, while nothing changes them."""

    def acquire(self, hold: LockHold, deadline: float | None) -> bool:
        """Acquire a lock. False: the deadline passed."""

    def wait(self, rounds: int, deadline: float | None) -> bool:
        """Wait until so many rounds are done. False: the deadline passed."""

    def check_takes_rows(self, deadline: float | None) -> None:
        """Raise why the run takes no rows, if it does not."""

    def slowest(self) -> str:
        """Say what it waits for."""


class Snapshotting:
    """Takes the snapshots of one run."""

    def __init__(self, recovery: Recovery) -> None:
        self.recovery = recovery
        self.turn = CallLock()  # of a snapshot, which senders let go first
        self._saving = CallLock()  # until one is encoded: states are noted for one

    def begin(self, run: RunWithState) -> None:
        """Take snapshots every so many seconds, if that is wanted. Raises SnapshotError."""
        if self.recovery.begin(partial(take_snapshot, weakref.ref(run))):
            # An operator that cannot be saved is known before there are rows.
            run.cut(self.recovery.codec_of(())).encoded(0)

    def take(self, run: RunWithState, codec: Codec, deadline: float | None) -> Snapshot:
        """Wait until no row is on its way, and take the state. See `Run.snapshot`."""
        saving = self._saving.hold()
        try:
            if not run.acquire(saving, deadline):
                raise RunTimeout(f"another snapshot of {run!r} is being encoded")
            cut, pause, rounds = self._cut_in_a_pause(run, codec, deadline)
            snapshot = cut.encoded(pause)
        finally:
            saving.release()
        self.recovery.save(snapshot, rounds)
        return snapshot

    def _cut_in_a_pause(
        self, run: RunWithState, codec: Codec, deadline: float | None
    ) -> tuple[Cut, float, int]:
        """Return a cut, how long senders waited for it, and behind how many rounds it is."""
        turn, hold = self.turn.hold(), run.lock.hold()
        try:
            if not (run.acquire(turn, deadline) and run.acquire(hold, deadline)):
                raise RunTimeout(f"a sender waits for room in {run!r}: {run.slowest()}")
            run.check_takes_rows(deadline)
            if not run.wait(run.flow.admitted, deadline):
                raise RunTimeout(f"rows are on their way in {run!r}: {run.slowest()}")
            run.check_takes_rows(deadline)
            begun = time.monotonic()
            return run.cut(codec), time.monotonic() - begun, run.flow.admitted
        finally:
            hold.release()
            turn.release()


def take_snapshot(reference: weakref.ref[RunWithState]) -> bool:
    """Take a snapshot, if rows have come since the last one. False: the run is over."""
    run = reference()
    if run is None or run.life.ended or run.life.finishing:
        return False
    if run.flow.admitted == run.snapshots.recovery.saved:
        return True
    try:
        run.snapshot()
    except BaseException as error:  # no thread of a caller's is here that it could end
        if run.life.state is not RunState.RUNNING:
            return False
        log.error("a snapshot failed", run=repr(run), exc_info=error)
    return True
