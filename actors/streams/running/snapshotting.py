"""Snapshots of a run: the one that it resumes from, and those that are taken of it."""

from __future__ import annotations

import os
import sys
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
from callboard.streams.running.call_lock import CallLock
from callboard.streams.running.flow import GraphFlow
from callboard.streams.running.lifecycle import Lifecycle, RunState
from callboard.streams.running.waiting import Waiting
from callboard.streams.snapshots.cut import Cut
from callboard.streams.snapshots.directory import Periodic, SnapshotStore
from callboard.streams.snapshots.snapshot import Snapshot, state_codec
from callboard.system import ActorSystem

if TYPE_CHECKING:
    from callboard.remote.wire.codec import Codec, Types


class RunWithState(Protocol):
    """The interface of a run for snapshots."""

    flow: GraphFlow
    life: Lifecycle
    lock: CallLock
    snapshots: Snapshotting
    waiting: Waiting

    def snapshot(self) -> Snapshot:
        """Take a snapshot."""

    def cut(self, codec: Codec) -> Cut:
        """Take the states, while nothing changes them."""

    def check_takes_rows(self, deadline: float | None) -> None:
        """Raise the reason why the run takes no rows, if it does not."""


class Snapshotting:
    """Restores a run as its option `restore` says, and takes snapshots of it."""

    def __init__(self, restore: Any, plan: Plan, system: ActorSystem) -> None:
        """Read the snapshot, and check that it is one of this graph.

        Raises SnapshotError, ConfigError, OSError, and RunError for a directory that another run
        has.
        """
        self.turn = CallLock()
        """Held while a snapshot is taken. Senders wait until it is free."""
        self.saved = 0
        """The number of rounds that the last snapshot written includes."""
        self.restored: Snapshot | None = None
        """The snapshot that the run resumes from, if any."""
        self._system = system
        self._directory: SnapshotStore | None = None
        self._periodic: Periodic | None = None
        self._codec: Codec | None = None
        self._encoding = CallLock()  # until a snapshot is encoded: states are noted for one
        self._writing = CallLock()
        self._taken = 0  # the number of snapshots so far
        self._written = 0  # the number of the last one that was written
        if isinstance(restore, SnapshotStore):
            if restore.every is not None and system._runtime.manual:
                raise ConfigError(
                    f"every={restore.every:g} needs a clock that runs by itself, and that of a "
                    "manual system does not: call run.snapshot()"
                )
            restore._open()
            self._directory, self._codec = restore, restore.codec
        try:
            if self._directory is not None:
                self.restored = self._directory._newest()
            elif isinstance(restore, Snapshot):
                self.restored = restore
            elif isinstance(restore, str | PathLike):
                if os.path.isdir(restore):
                    path = os.fspath(restore)
                    raise ConfigError(f"{path!r} is a directory: restore=SnapshotStore({path!r})")
                self.restored = Snapshot.load(restore)
            elif restore is not None:
                raise ConfigError(
                    "restore must be a Snapshot, a SnapshotStore or a file, got "
                    f"{safe_repr(restore)}"
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

    def begin(self, run: RunWithState) -> None:
        """Take snapshots periodically, if the directory asks for it. Raises SnapshotError."""
        directory = self._directory
        if directory is None or directory.every is None:
            return
        act = partial(take_snapshot, weakref.ref(run))
        self._periodic = Periodic(f"{self._system.name}-snapshots", directory.every, act)
        # An operator that cannot be saved is known before there are rows.
        run.cut(self.codec_of(())).encoded(0)

    def take(self, run: RunWithState, codec: Codec, deadline: float | None) -> Snapshot:
        """Wait until no row is in flight, take the state, and write it to the directory, if any.

        See `Run.snapshot`.
        """
        encoding = self._encoding.hold()
        try:
            if not run.waiting.acquire(encoding, deadline):
                raise RunTimeout(f"another snapshot of {run!r} is being encoded")
            cut, pause, rounds = self._cut_in_a_pause(run, codec, deadline)
            snapshot = cut.encoded(pause)
            self._taken = number = self._taken + 1
        finally:
            encoding.release()
        cut.sync_files()
        if self._directory is not None:
            self._write(run, snapshot, number, rounds)
        return snapshot

    def _write(self, run: RunWithState, snapshot: Snapshot, number: int, rounds: int) -> None:
        """Write a snapshot behind so many rounds, unless a later one has been written."""
        writing = self._writing.hold()
        try:
            run.waiting.acquire(writing, None)  # part of the writing, which has no deadline
            directory = self._directory  # None: the run has ended by now
            if directory is not None and number > self._written:
                directory._save(snapshot)
                self.saved, self._written = rounds, number
        finally:
            writing.release()

    def _cut_in_a_pause(
        self, run: RunWithState, codec: Codec, deadline: float | None
    ) -> tuple[Cut, float, int]:
        """Return a cut, the seconds that it took, and the number of rounds that it includes."""
        turn, hold = self.turn.hold(), run.lock.hold()
        try:
            if not (run.waiting.acquire(turn, deadline) and run.waiting.acquire(hold, deadline)):
                raise RunTimeout(f"a sender waits for room in {run!r}: {run.waiting.slowest()}")
            run.check_takes_rows(deadline)
            if not run.waiting.for_all(deadline):
                raise RunTimeout(f"rows are on their way in {run!r}: {run.waiting.slowest()}")
            run.check_takes_rows(deadline)
            begun = time.monotonic()
            return run.cut(codec), time.monotonic() - begun, run.flow.admitted
        finally:
            hold.release()
            turn.release()

    # For a run that was not ended. At exit the module may be empty, and the thread that takes
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
            directory._close()


def take_snapshot(reference: weakref.ref[RunWithState]) -> bool:
    """Take a snapshot, if rows have come since the last one. False: the run is over."""
    run = reference()
    if run is None or run.life.ended or run.life.finishing:
        return False
    if run.flow.admitted == run.snapshots.saved:
        return True
    try:
        run.snapshot()
    except BaseException as error:  # this is not a caller's thread, which it could end
        if run.life.state is not RunState.RUNNING:
            return False
        log.error("a snapshot failed", run=repr(run), exc_info=error)
    return True
