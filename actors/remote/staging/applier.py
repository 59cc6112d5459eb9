"""Hands committed batches to actors: each once it is on disk, one after the other."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from threading import Thread
from typing import Any

from callboard import Future
from callboard.core.errors import DrainTimeout
from callboard.core.log import log
from callboard.core.text import safe_str, sendable
from callboard.core.threads.wait_queue import WaitQueue
from callboard.remote.errors import StateError
from callboard.remote.staging.persistent import RowKey
from callboard.remote.staging.targets import Target
from callboard.remote.storage.database import may_pass
from callboard.remote.storage.journal import Journal
from callboard.remote.storage.publications import check_columns
from callboard.remote.storage.store import Backlog

_TROUBLE = 1_000  # bytes of an exception's text, which goes into each PONG
_FIRST_WAIT, _LONGEST_WAIT = 0.1, 5.0  # seconds between attempts to write
_AHEAD = 16  # frames that an actor may have before it: it does not wait, and memory is bounded


class _StopWanted(Exception):
    """The server stops: the batch in work stays in the journal."""


class Applier:
    """A thread, outside of the system: it waits for full mailboxes, and for actors.

    A batch that cannot be applied ends its work: what follows waits for the server's next start.
    One that the backlog holds waits for a release, and what follows behind it. One that is applied,
    and whose end the disk does not take, is written again later: the disk may have room then.
    """

    def __init__(self, journal: Journal, targets: Sequence[Target], backlog: Backlog) -> None:
        self._journal = journal
        self._backlog = backlog
        self._targets = {target.name: target for target in targets}
        self.committed = journal.last
        """The number of the last batch that is on disk."""
        first = journal.first_with_rows()
        self.applied = self.committed if first is None else first - 1
        """The number of the last batch that was applied."""
        self.trouble = ""
        """Why nothing is applied any more, or now."""
        self._unwritten_end: Callable[[], None] | None = None  # of a batch that is applied
        self._wait = _FIRST_WAIT
        self._unwritten: Counter[str] = Counter()  # batches since an entry's last snapshot
        self._is_stopping = False
        self._changed = WaitQueue()
        self._thread: Thread | None = None

    # --- the start, in one thread -----------------------------------------------------------------

    def restore(self) -> None:
        """Give PersistentActors their states. Raises StateError.

        Raises it also if there are rows or a state for an entry that is not served, or if an entry
        has published rows with other columns than now.
        """
        positions = self._journal.positions()
        saved = {entry for entry, position in positions.items() if position.snapshot is not None}
        known = saved.union(self._journal.entries(), self._journal.publishers())
        missing = sorted(known - self._targets.keys())
        if missing:
            raise StateError(
                f"the state directory has rows or a state for {missing}, and the entries that are "
                f"served are {sorted(self._targets)}"
            )
        for name in self._journal.publishers():
            check_columns(name, self._journal.published(name).schema, self._targets[name].schema)
        for name, target in self._targets.items():
            target.restore(positions[name].snapshot if name in positions else None)

    def apply_all(self) -> None:
        """Apply what is committed, until there is trouble, or a batch that has to wait."""
        try:
            while self._unwritten_end is not None or (
                self.applied < self.committed and not self._must_wait(self.applied + 1)
            ):
                if self._unwritten_end is None:
                    self._unwritten_end = self._apply(self.applied + 1)
                self._unwritten_end()
                self._unwritten_end, self._wait, self.trouble = None, _FIRST_WAIT, ""
                self.applied += 1
                self._changed.notify_all()
        except _StopWanted:
            pass
        except Exception as error:
            if not self._is_stopping:
                self._note_trouble(error)
        finally:
            self._changed.notify_all()

    def start(self, name: str) -> None:
        """Apply what will be committed from now on."""
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # --- in any thread ----------------------------------------------------------------------------

    def note_commit(self, number: int) -> None:
        """Apply the batch with this number, too."""
        self.committed = number
        self._changed.notify_all()

    def note_release(self) -> None:
        """Look again whether the next batch has to wait."""
        self._changed.notify_all()

    def finish(self, timeout: float) -> None:
        """Wait until all is applied, or nothing more will be. Raises DrainTimeout."""

        def is_over() -> bool:
            return self.applied == self.committed or bool(self.trouble) or self._backlog.is_holding

        if not self._changed.wait_for(is_over, timeout):
            raise DrainTimeout(
                f"{self.committed - self.applied} committed batches were not applied in "
                f"{timeout:g} s; they will be at the next start"
            )

    def stop(self, timeout: float) -> None:
        """Apply no more. The batch in work stays in the journal."""
        self._is_stopping = True
        self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout)

    # --- on the applying thread -------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            if self._unwritten_end is None:
                self._changed.wait_for(lambda: self._is_stopping or self._can_go_on())
            else:
                self._changed.wait_for(lambda: self._is_stopping, self._wait)
                self._wait = min(self._wait * 2, _LONGEST_WAIT)
            if self._is_stopping:
                return
            self.apply_all()

    def _note_trouble(self, error: Exception) -> None:
        name = str(self._journal.name(self.applied + 1))
        text = sendable(safe_str(error), _TROUBLE)
        if self._unwritten_end is not None and may_pass(error):
            if not self.trouble:
                log.error("batch waits for the disk", batch=name, error=error)
            self.trouble = f"{name} is applied, and cannot be written yet: {text}"
            return
        self._unwritten_end = None
        self.trouble = f"{name} cannot be applied: {text}"
        log.error("batch failed", batch=name, exc_info=error)

    def _can_go_on(self) -> bool:
        is_held = bool(self.trouble) or self._backlog.is_holding
        return self.applied < self.committed and not is_held

    def _must_wait(self, number: int) -> bool:
        return self._backlog.holds(self._journal.name(number), self._journal.entries(number))

    def _apply(self, number: int) -> Callable[[], None]:
        """Give actors a batch, and return what writes that they have it."""
        names = self._journal.entries(number)
        for name in names:
            self._give(self._targets[name], number)
        self._unwritten.update(names)
        targets = [self._targets[name] for name in names]
        due = [
            target for target in targets if self._unwritten[target.name] >= target.snapshot_every
        ]
        taken = {target.name: target.snapshot() for target in due}
        published = {
            name: each.publication for name, each in taken.items() if each.publication is not None
        }
        snapshots = {name: each.snapshot for name, each in taken.items()}

        def write() -> None:
            if snapshots:
                self._journal.mark(number, snapshots, published)
            for name in snapshots:
                del self._unwritten[name]

        return write

    def _give(self, target: Target, number: int) -> None:
        job, batch = self._journal.name(number)
        given: deque[Future[Any]] = deque()
        for frame in self._journal.frames(number, target.name):
            if self._is_stopping:
                raise _StopWanted
            first = RowKey(job, batch, frame.partition, frame.row)
            given.append(target.give(frame.layout, frame.payload, first))
            if len(given) == _AHEAD:
                _settle(target, given, _AHEAD // 2)
        _settle(target, given, len(given))


def _settle(target: Target, given: deque[Future[Any]], count: int) -> None:
    """Wait for the oldest ones: for the last of them first, so that this thread is woken once."""
    if count:
        given[count - 1].exception()
    for _ in range(count):
        target.settle(given.popleft())
