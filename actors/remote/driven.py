"""A client's link, whose frames are read by a thread that waits for one of them.

Else the loop's thread would read the answer and wake the one that waits: a wake-up more, and two
threads that want the interpreter at the same moment.
"""

from __future__ import annotations

import os
import select
import time
from threading import Lock, get_ident
from typing import Any

from callboard import Future
from callboard.remote.link import AGAIN, BREAKS, Link, why_it_breaks

_SLICE = 60.0  # seconds, after which a thread that waits looks again
_RING = (1).to_bytes(8, "little")


class DrivenLink(Link):
    """A link that one thread at a time reads: the loop's, or one that waits in `drive()`.

    The loop looks at a poll set, which has the socket in it, and for the time of a drive has not:
    that may be changed in any thread, what the loop looks at may not. A link that ends while it is
    driven is closed by the thread that drives it.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.is_open = False
        """Whether it may be driven: the loop's thread has greeted the other side."""
        self._reading = Lock()  # held by who reads
        self._awaited: Future[Any] | None = None  # by who drives; written with the lock
        self._driver = 0
        self._gate = select.epoll()
        self._gate.register(self._socket, select.EPOLLIN)
        self._readable = self._gate.fileno()
        self._bell = open(os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC), "r+b", buffering=0)  # noqa: SIM115
        self._poller = select.poll()
        self._poller.register(self._socket, select.POLLIN)
        self._poller.register(self._bell, select.POLLIN)

    # --- on the loop's thread ---------------------------------------------------------------------

    def close(self) -> None:
        """Send what waits, then hang up; who drives does so no more."""
        super().close()
        with self._lock:
            self._ring()

    def _read(self) -> None:
        if self._reading.acquire(blocking=False):
            try:
                super()._read()
            finally:
                self._reading.release()

    def _let_go(self) -> None:
        if self._awaited is not None:
            self._ring()
            return
        super()._let_go()
        self._gate.close()
        self._bell.close()

    # --- in any thread ----------------------------------------------------------------------------

    def drive(self, awaited: Future[Any], deadline: float | None) -> None:
        """Read frames in this thread until `awaited` is done, or `time.monotonic()` is `deadline`.

        It returns at once where another thread reads, and early where the connection ends; the
        loop's thread looks after that. A thread that is interrupted while it works on what it has
        received breaks the connection, as nobody knows how far it came.
        """
        if self._is_tls or not self.is_open or not self._reading.acquire(blocking=False):
            return
        try:
            with self._lock:
                if self._ended or self._is_closing:
                    return
                self._awaited, self._driver = awaited, get_ident()
                self._gate.modify(self._socket, 0)
            self._read_until_done(awaited, deadline)
        finally:
            with self._lock:
                if self._awaited is not None:
                    self._awaited = None
                    if self._ended:
                        self._let_go()
                    else:
                        self._gate.modify(self._socket, select.EPOLLIN)
            self._reading.release()

    def ring(self, awaited: Future[Any]) -> None:
        """Wake the thread that drives until `awaited` is done."""
        with self._lock:
            if self._awaited is awaited and self._driver != get_ident():
                self._ring()

    def forsake(self) -> None:
        """Let go of the copies in a forked child."""
        super().forsake()
        self._gate.close()
        self._bell.close()

    def _ring(self) -> None:
        """Wake who drives, with the lock."""
        if self._awaited is not None:
            self._bell.write(_RING)

    def _read_until_done(self, awaited: Future[Any], deadline: float | None) -> None:
        left = _SLICE
        while not awaited.done() and not self._ended and not self._is_closing:
            if deadline is not None:
                left = min(_SLICE, deadline - time.monotonic())
                if left <= 0:
                    return
            ready = self._poller.poll(left * 1000)
            if len(ready) > 1 or (ready and ready[0][0] == self._bell.fileno()):
                self._bell.read(8)
                continue
            try:
                self._receive()
            except AGAIN:
                continue
            except BREAKS as error:
                self._break(why_it_breaks(error))
                return
            except BaseException:
                self._break("the thread that read it was interrupted")
                raise
