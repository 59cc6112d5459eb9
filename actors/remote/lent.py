"""A link that another thread than the loop's may read for a while."""

from __future__ import annotations

import os
import select
from threading import Lock
from typing import Any

from callboard.remote.link import AGAIN, BREAKS, Link, why_it_breaks


class LentLink(Link):
    """A link that one thread at a time reads: the loop's, or one that has borrowed it.

    The loop looks at a poll set, which has the socket in it, and for as long as the link is lent
    has not: that may be changed in any thread, what the loop looks at may not. A link that ends
    while it is lent is closed by who gives it back.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.is_open = False
        """Whether it may be lent: the loop's thread has greeted the other side."""
        self._reading = Lock()  # held by who reads
        self._bell = -1  # of who has borrowed it; written with the lock
        self._gate = select.epoll()
        self._gate.register(self._socket, select.EPOLLIN)
        self._readable = self._gate.fileno()

    # --- on the loop's thread ---------------------------------------------------------------------

    def close(self) -> None:
        """Send what waits, then hang up. Who has borrowed it gives it back."""
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
        if self._bell >= 0:
            self._ring()
            return
        super()._let_go()
        self._gate.close()

    # --- in any thread ----------------------------------------------------------------------------

    def lend(self, bell: int) -> int:
        """Return the socket's descriptor, for the calling thread alone to read until `take_back()`.

        `bell`, the descriptor of an eventfd, is rung when it is wanted back. -1: another thread
        reads it, or it ends, or only the loop may: TLS has read more than its socket tells.
        """
        if not self._may_be_lent() or not self._reading.acquire(blocking=False):
            return -1
        descriptor = -1
        try:
            descriptor = self._borrow(bell)
        finally:
            if descriptor < 0:
                self._return()
        return descriptor

    def take_back(self, is_readable: bool) -> None:
        """Read once if there is something to read; then it is the loop's again."""
        try:
            if is_readable:
                self._receive_here()
        finally:
            self._return()

    def forsake(self) -> None:
        """Let go of the copies in a forked child."""
        super().forsake()
        self._gate.close()

    def _may_be_lent(self) -> bool:
        return self.is_open and not self._is_tls

    def _borrow(self, bell: int) -> int:
        """`lend()`, for who holds `_reading`; `_return()` comes next, whatever happens."""
        with self._lock:
            if not self._is_reading or self._ended or self._is_closing:
                return -1
            self._bell = bell
            self._gate.modify(self._socket, 0)
            return self._socket.fileno()

    def _return(self) -> None:
        with self._lock:
            if self._bell >= 0:
                self._bell = -1
                if self._ended:
                    self._let_go()
                else:
                    self._gate.modify(self._socket, select.EPOLLIN)
        self._reading.release()

    def _ring(self) -> None:
        """Wake who has borrowed it, with the lock."""
        if self._bell >= 0:
            os.eventfd_write(self._bell, 1)

    def _receive_here(self) -> bool:
        """Receive once, in the thread that has borrowed it. False: it ends, as the loop will see.

        A thread that is interrupted while it works on what it has received breaks the connection,
        as nobody knows how far it came.
        """
        try:
            self._receive()
        except AGAIN:
            pass
        except BREAKS as error:
            self._break(why_it_breaks(error))
            return False
        except BaseException:
            self._break("the thread that read it was interrupted")
            raise
        return True
