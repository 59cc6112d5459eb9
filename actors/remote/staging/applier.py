"""Passes committed batches to actors, one after the other, once they are on disk."""

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
_AHEAD = 16  # frames sent ahead to an actor: it need not wait, and memory is bounded


class _Stopping(Exception):
    """The server stops: the current batch stays in the journal."""


class Applier:
    """Applies committed batches, on a thread that may wait for full mailboxes and for actors.

    A batch that cannot be applied ends its work: later ones wait for the server's next start. A
    batch that the backlog holds waits for a release, with the later ones behind it. If a batch is
    applied, and the disk does not take its end, that is written again later.
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
        """Why nothing is applied, now or until the next start."""
        self._unwritten_end: Callable[[], None] | None = None  # of a batch that is applied
        self._wait = _FIRST_WAIT
        self._unwritten: Counter[str] = Counter()  # batches since an entry's last snapshot
        self._is_stopping = False
        self._changed = WaitQueue()
        self._thread: Thread | None = None

    # --- the start, in one thread -----------------------------------------------------------------

    def restore(self) -> None:
        """Restore the states of PersistentActors. Raises StateError.

        It is also raised for rows or a state of an entry that is not served, and for an entry that
        has published rows with other columns than now.
        """
        positions = self._journal.positions()
        saved = {entry for entry, position in positions.items() if position.snapshot is not None}
        known = saved.union(self._journal.entries(), self._journal.publishers())
        missing = sorted(known - self._targets.keys())
        if missing:
            raise StateError(
                f"the state directory has rows or a state for {missing}, but the served entries "
                f"are {sorted(self._targets)}"
            )
        for name in self._journal.publishers():
            check_columns(name, self._journal.published(name).schema, self._targets[name].schema)
        for name, target in self._targets.items():
            target.restore(positions[name].snapshot if name in positions else None)

    def apply_all(self) -> None:
        """Apply committed batches, until one fails or must wait."""
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
        except _Stopping:
            pass
        except Exception as error:
            if not self._is_stopping:
                self._note_trouble(error)
        finally:
            self._changed.notify_all()

    def start(self, name: str) -> None:
        """Apply batches that are committed from now on."""
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # --- in any thread ----------------------------------------------------------------------------

    def note_commit(self, number: int) -> None:
        """Apply the batch with this number as well."""
        self.committed = number
        self._changed.notify_all()

    def note_release(self) -> None:
        """Check again whether the next batch must wait."""
        self._changed.notify_all()

    def finish(self, timeout: float) -> None:
        """Wait until all is applied, or the rest cannot be. Raises DrainTimeout."""

        def is_over() -> bool:
            return self.applied == self.committed or bool(self.trouble) or self._backlog.is_holding

        if not self._changed.wait_for(is_over, timeout):
            raise DrainTimeout(
                f"{self.committed - self.applied} committed batches were not applied in "
                f"{timeout:g} s; the next start applies them"
            )

    def stop(self, timeout: float) -> None:
        """Apply no more. The current batch stays in the journal."""
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
        """Pass a batch to its actors, and return the function that notes this in the journal."""
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
                raise _Stopping
            first = RowKey(job, batch, frame.partition, frame.row)
            given.append(target.give(frame.layout, frame.payload, first))
            if len(given) == _AHEAD:
                _settle(target, given, _AHEAD // 2)
        _settle(target, given, len(given))


def _settle(target: Target, given: deque[Future[Any]], count: int) -> None:
    """Wait for the oldest futures, for the last of them first: this thread is woken once."""
    if count:
        given[count - 1].exception()
    for _ in range(count):
        target.settle(given.popleft())
