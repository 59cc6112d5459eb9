"""A client's link, whose frames are read by a thread that waits for one of them.

Else the loop's thread would read the answer and wake the one that waits: a wake-up more, and two
threads that want the interpreter at the same moment.
"""

from __future__ import annotations

import os
import select
import time
from threading import get_ident
from typing import Any

from callboard import Future
from callboard.remote.sockets.lent import LentLink

_SLICE = 60.0  # seconds, after which a thread that waits looks again


class DrivenLink(LentLink):
    """A link that a thread borrows that waits in `drive()`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._awaited: Future[Any] | None = None  # by who drives; written with the lock
        self._driver = 0
        self._own_bell = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poller = select.poll()
        self._poller.register(self._socket, select.POLLIN)
        self._poller.register(self._own_bell, select.POLLIN)

    def drive(self, awaited: Future[Any], deadline: float | None) -> None:
        """Read frames in this thread until `awaited` is done, or `time.monotonic()` is `deadline`.

        It returns at once where another thread reads, and early where the connection ends; the
        loop's thread looks after that. In any thread.
        """
        if not self._may_be_lent() or not self._reading.acquire(blocking=False):
            return
        try:
            if self._borrow(self._own_bell) >= 0:
                with self._lock:
                    self._awaited, self._driver = awaited, get_ident()
                self._read_until_done(awaited, deadline)
        finally:
            self._awaited = None
            self._return()

    @property
    def is_driven_here(self) -> bool:
        """Whether this thread drives it, and is in the middle of what it has read."""
        return self._awaited is not None and self._driver == get_ident()

    def ring(self, awaited: Future[Any]) -> None:
        """Wake the thread that drives until `awaited` is done. In any thread."""
        with self._lock:
            if self._awaited is awaited and self._driver != get_ident():
                self._ring()

    def forsake(self) -> None:
        """Let go of the copies in a forked child."""
        super().forsake()
        os.close(self._own_bell)

    def _let_go(self) -> None:
        super()._let_go()
        if self._bell < 0:
            os.close(self._own_bell)

    def _read_until_done(self, awaited: Future[Any], deadline: float | None) -> None:
        left = _SLICE
        while not awaited.done() and not self._ended and not self._is_closing:
            if deadline is not None:
                left = min(_SLICE, deadline - time.monotonic())
                if left <= 0:
                    return
            ready = self._poller.poll(left * 1000)
            if len(ready) > 1 or (ready and ready[0][0] == self._own_bell):
                os.eventfd_read(self._own_bell)
            elif not self._receive_here():
                return
