"""Buffers of outputs that wait in a run's collectors until `results()` takes them."""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

from callboard.core.text import safe_repr
from callboard.core.threads.wait_queue import WaitQueue
from callboard.streams.errors import RunError

T = TypeVar("T")


class OutputBuffer(Generic[T]):
    """The outputs in a collector that were not taken yet. Safe in every thread.

    Takers have a lock for what they take out of the collector's list, and lanes have none: they go
    on appending. On a list the copy of a slice, its deletion and an append are each atomic; without
    an interpreter lock, by the list's own. Appends only add at the end. So what is deleted is what
    was copied.

    One iterator at a time takes: `hand_over()` says which. Its chunk identifies it; no reference
    to it is kept.
    """

    def __init__(self, name: str, collected: list[T], limit: int | None) -> None:
        self.name = name
        self.limit = sys.maxsize if limit is None else limit
        """As many make senders wait."""
        self.loop: threading.Thread | None = None
        """The thread whose event loop has the task that takes, if one does."""
        self._user: Callable[[], Any] | None = None
        self.is_free = True
        """The taker has let go. It may take again until another one does."""
        self.chunk: list[T] = []
        """Outputs that are out of the collector's list, the last first. Its pop() needs no lock."""
        self._taker: weakref.ref[Any] | None = None
        self._collected = collected
        self._lock = threading.Lock()
        self._taken = WaitQueue()

    def __len__(self) -> int:
        # In this order: outputs that a taker moves just now are counted twice, not missed.
        return len(self._collected) + len(self.chunk)

    def is_full(self) -> bool:
        """Tell whether senders wait."""
        return len(self) >= self.limit and not self._is_dropped()

    def has_room(self) -> bool:
        """Tell whether to wake waiting senders: to wake one costs more than an output."""
        return len(self) <= self.limit // 2 or self._is_dropped()

    def _is_dropped(self) -> bool:
        return self._taker is not None and self._taker() is None

    def hand_over(self, taker: object, limit: int | None) -> bool:
        """Let another iterator take all outputs, with its own chunk.

        False: the last iterator is in use and has not let go.
        """
        with self._lock:
            if not self._may_be_replaced():
                return False
            # No call between these, after which Ctrl-C comes, or another thread that takes from it.
            old, left = self.chunk, self.chunk[:]
            self.chunk = left
            del old[:]
            self._taker = weakref.ref(taker)
            self._user = self.loop = None
            self.is_free = False
            self.limit = sys.maxsize if limit is None else limit
        self._taken.notify_all()
        return True

    def _may_be_replaced(self) -> bool:
        if self.is_free or self._is_dropped():
            return True
        if self._user is None:
            return False
        return _is_over(self._user())

    def use(self, user: Any) -> None:
        """Note the taker: the calling thread, or the task that runs in it, of asyncio or trio."""
        thread = threading.current_thread()
        self.loop = None if user is thread else thread
        self._user = None if user is None else weakref.ref(user)
        self.is_free = False

    def take_one(self) -> T:
        """Take the first output. Raises IndexError without one."""
        with self._lock:
            fetches = not self.chunk
            if fetches:
                # Half of what has a sender wait: it goes on while the rest of it is taken.
                rows = self._collected[: (self.limit + 1) // 2]
                chunk, added, number = self.chunk, rows[::-1], len(rows)
                # Into the chunk first: rows that are counted twice make a sender wait, rows that
                # are in neither would let it go on. No call is between the two: Ctrl-C comes there.
                chunk += added
                del self._collected[:number]
            try:
                return self.chunk.pop()
            finally:
                if fetches:
                    self._taken.notify_all()

    def take_all(self) -> list[T]:
        """Take all that there are."""
        rows = []
        with self._lock:
            with suppress(IndexError):
                while True:  # one by one: others may do so, and have no lock
                    rows.append(self.chunk.pop())
            fetched = self._collected[:]
            del self._collected[: len(fetched)]
        self._taken.notify_all()
        return rows + fetched

    def rows(self) -> list[T]:
        """Return all that there are, and leave them to be taken."""
        with self._lock:
            return self.chunk[::-1] + self._collected

    def unbind(self) -> None:
        """Let senders continue, however many outputs there are."""
        self.limit = sys.maxsize
        self._taken.notify_all()

    def wait_for_taker(self, seconds: float) -> None:
        """Wait for takers to make room, for `seconds` at most."""
        self._taken.wait_for(self.has_room, seconds)


class OutputBuffers:
    """The output buffers of a run: one for each collector that `results()` was called for."""

    def __init__(self, collected: dict[str, list[Any]]) -> None:
        self.collected = collected
        """The lists of all collectors, by their names."""
        self.buffers: dict[str, OutputBuffer[Any]] = {}
        """The buffers, by the same names. Never changed, only replaced: senders go through it."""
        self._lock = threading.Lock()

    def is_any_full(self) -> bool:
        """Tell whether senders wait."""
        return any(buffer.is_full() for buffer in self.buffers.values())

    def rows(self) -> dict[str, list[Any]]:
        """Return the outputs that are not taken, by the collectors' names."""
        return {buffer.name: buffer.rows() for buffer in self.buffers.values()}

    def of(self, name: str | None, run: object) -> OutputBuffer[Any]:
        """Return the buffer of the collector of this name, or of the only one. Raises RunError."""
        collected = self.collected
        if not collected:
            raise RunError(f"results() needs a collect() in the graph, and {run!r} has none")
        if name is None and len(collected) == 1:
            (name,) = collected
        if not isinstance(name, str) or name not in collected:
            has = ", ".join(map(repr, collected))
            raise RunError(
                f"results() expects the name of one of the collectors {has}, got {safe_repr(name)}"
            )
        with self._lock:
            found = self.buffers.get(name)
            if found is None:
                found = OutputBuffer(name, collected[name], None)
                self.buffers = {**self.buffers, name: found}
        return found


def _is_over(user: Any) -> bool:
    """Tell whether a thread or a task has ended."""
    if user is None:
        return True
    if isinstance(user, threading.Thread):
        return not user.is_alive()
    if hasattr(user, "done"):
        return bool(user.done())
    return getattr(user.coro, "cr_frame", None) is None  # a task of trio
