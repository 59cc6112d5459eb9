"""A condition variable whose waits signal handlers may interrupt safely."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

# The longest sleep between two checks for signals: a signal just before a sleep does not end it.
_SIGNAL_CHECK = 0.05


class WaitQueue:
    """A queue of threads that wait until a predicate is true.

    A signal handler that raises ends the wait with its exception. The waits of threading.Condition
    and Event fail here: at one moment they have released their lock and do not know it yet. If a
    handler raises just then, they release the lock again, which raises RuntimeError. Here each
    waiter has its own lock, and does not release it itself.

    A waiter is in the queue before it looks, and a change is made before its notification. So no
    change is missed, and no change needs a lock.
    """

    def __init__(self) -> None:
        self._asleep: deque[threading.Lock] = deque()

    def notify_all(self) -> None:
        """Have all waiting threads check their predicates. In any thread.

        If a signal handler raises during this, its exception is raised when all threads have been
        woken.
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
        # A waiter leaves the queue after it was woken: an interruption in between loses no waiter.
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

        The predicate runs in the caller's thread: at the start, after each notify_all(), at the
        end.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        gets_signals = threading.current_thread() is threading.main_thread()
        longest = _SIGNAL_CHECK if gets_signals else threading.TIMEOUT_MAX
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
