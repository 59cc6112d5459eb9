"""Threads that wait until something is so, and may be left waiting by a signal."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

# The longest sleep before a look for signals: one that comes just before a sleep does not end it.
_SLICE = 0.05


class WaitQueue:
    """Where threads wait until something is so.

    A signal's handler that raises ends the wait with what it raised. Not so threading.Condition's,
    nor that of an Event: there is a moment at which it has let its lock go and does not know that
    yet; a handler that raises just then has the lock let go again, and RuntimeError comes out.
    Here each waiter has a lock of its own, which it does not let go itself.

    Who waits is in the queue before it looks, and who changes something does so before it notifies:
    so no change is missed, and none needs a lock.
    """

    def __init__(self) -> None:
        self._asleep: deque[threading.Lock] = deque()

    def notify_all(self) -> None:
        """Have all who wait look again; in any thread.

        What a signal's handler raises meanwhile comes out when all have been woken.
        """
        raised: BaseException | None = None
        while True:
            try:
                self._wake_all()
            except BaseException as error:
                raised = error
            else:
                break
        if raised is not None:
            raise raised

    def _wake_all(self) -> None:
        # Who waits leaves the queue after it was woken: an interruption in between loses nobody.
        while True:
            try:
                lock = self._asleep[0]
            except IndexError:
                return
            with suppress(RuntimeError):  # another thread has woken it
                lock.release()
            with suppress(ValueError):
                self._asleep.remove(lock)

    def wait_for(self, predicate: Callable[[], object], timeout: float | None = None) -> bool:
        """Wait until `predicate()` is true; False if it is not after `timeout` seconds.

        It is asked in the caller's thread: at the start, after each notify_all(), at the end.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        hears_signals = threading.current_thread() is threading.main_thread()
        longest = _SLICE if hears_signals else threading.TIMEOUT_MAX
        while True:
            lock = threading.Lock()
            lock.acquire()
            self._asleep.append(lock)
            try:
                left = longest if deadline is None else deadline - time.monotonic()
                if predicate():
                    return True
                if left <= 0:
                    return False
                lock.acquire(timeout=min(left, longest))
            finally:
                with suppress(ValueError):
                    self._asleep.remove(lock)
