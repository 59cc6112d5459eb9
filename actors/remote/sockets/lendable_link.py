"""Links that a thread other than the loop's may read for a while."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from functools import partial
from threading import Lock, get_ident
from typing import Any

from callboard import Future
from callboard.remote.sockets.link import AGAIN, BREAKS, Link, why_it_breaks

_KEEP_TIME = 0.005  # seconds; after one to two of them the loop takes back a link that is kept
_AHEAD = 8  # reads of a borrower, at most, before it works on what has come


class LendableLink(Link):
    """A link that one thread at a time reads: the loop's, or one that has borrowed it.

    The loop looks at a poll set, which has the socket in it except while the link is lent. A poll
    set may be changed in any thread; the loop's own list may not. A link that ends while it is lent
    is closed by the worker that gives it back.

    A worker may keep it while it works on the messages that it has read. Otherwise, in a stream,
    the loop would read the next message at the same time, and both would contend for the
    interpreter lock. A worker that does not come back soon loses it to the loop.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.is_open = False
        """Whether it may be lent: the loop's thread has greeted the other side."""
        self._reading = Lock()  # held by the thread that reads
        self._wake_fd = -1  # of the borrower; written with the lock
        self._is_away = False  # the borrower is, and may lose it; written with the lock
        self._is_watched = False  # by the loop, for that; written with the lock
        self._loans = 0
        self._can_read = select.poll()
        self._can_read.register(self._socket, select.POLLIN)
        self.on_turn: Callable[[], bool] = _never
        """Called by a worker that has read it, or gives it back, and by the loop that takes it
        back. True: a worker may keep it."""
        self._gate = select.epoll()
        self._gate.register(self._socket, select.EPOLLIN)
        self._readable = self._gate.fileno()

    # --- on the loop's thread ---------------------------------------------------------------------

    def close(self) -> None:
        """Send the waiting output, then hang up. A borrower gives it back."""
        super().close()
        with self._lock:
            self._ring()

    def _read(self) -> None:
        if self._reading.acquire(blocking=False):
            try:
                super()._read()
            finally:
                self._reading.release()

    def _forget(self) -> None:
        super()._forget()
        self.on_turn = _never

    def _close_socket(self) -> None:
        if not self._reclaim() and self._wake_fd >= 0:
            self._ring()
            return
        super()._close_socket()
        self._gate.close()

    def _look_after(self, loans: int) -> None:
        """Take the link back if it was not lent again since this number of loans."""
        with self._lock:
            is_lost = loans == self._loans and self._reclaim()
            if self._wake_fd < 0:
                self._is_watched = False
            else:
                self._loop.call_later(_KEEP_TIME, self._look_after, self._loans)
        if is_lost:
            self.on_turn()

    # --- in any thread ----------------------------------------------------------------------------

    def lend(self, wake_fd: int) -> int:
        """Return the socket's descriptor, for the calling thread alone to read until `take_back()`.

        `wake_fd`, the descriptor of an eventfd, is rung when it is wanted back. -1: another thread
        reads it, or it ends, or only the loop may: TLS has read more than its socket tells.
        """
        with self._lock:
            is_kept = self._is_away and self._wake_fd == wake_fd
            if is_kept:
                self._is_away = False
                if self._may_be_read():
                    self._loans += 1
                    return self._socket.fileno()
        if is_kept:
            self.take_back(is_readable=False)
            return -1
        if not self._may_be_lent() or not self._reading.acquire(blocking=False):
            return -1
        descriptor = -1
        try:
            descriptor = self._borrow(wake_fd)
        finally:
            if descriptor < 0:
                self._return()
        return descriptor

    def take_back(self, is_readable: bool) -> bool:
        """Read if there is something to read. True: it stays lent, until the worker is back.

        Else it is the loop's again.
        """
        is_kept = False
        try:
            has_read = is_readable and self._receive_here(_AHEAD)
            is_kept = self.on_turn() and has_read and self._keep()
        finally:
            if not is_kept:
                self._return()
        return is_kept

    def has_more(self) -> bool:
        """Tell whether a worker keeps the link and will find something to read; one at a time asks.

        If so, the caller can leave work that the other side does not wait for to `on_turn()`.
        """
        return self._is_away and bool(self._can_read.poll(0))

    def _close_in_child(self) -> None:
        """In a forked child: close the copies."""
        super()._close_in_child()
        self._gate.close()

    def _may_be_lent(self) -> bool:
        return self.is_open and not self._is_tls

    def _may_be_read(self) -> bool:
        return self._is_reading and not self._ended and not self._is_closing

    def _keep(self) -> bool:
        """Keep the link while this thread works. Returns False if it cannot be kept."""
        with self._lock:
            if not self._may_be_read():
                return False
            self._is_away = True
            is_watched, self._is_watched = self._is_watched, True
        if not is_watched:
            self._call(partial(self._look_after, 0))
        return True

    def _reclaim(self) -> bool:
        """Take the link from a worker that is away, with the lock. Returns False if none is."""
        if not self._is_away:
            return False
        self._is_away = False
        self._wake_fd = -1
        if not self._ended:
            self._gate.modify(self._socket, select.EPOLLIN)
        self._reading.release()
        return True

    def _borrow(self, wake_fd: int) -> int:
        """`lend()`, for the holder of `_reading`; `_return()` comes next, whatever happens."""
        with self._lock:
            if not self._may_be_read():
                return -1
            self._wake_fd = wake_fd
            self._loans += 1
            self._gate.modify(self._socket, 0)
            return self._socket.fileno()

    def _return(self) -> None:
        with self._lock:
            if self._wake_fd >= 0:
                self._wake_fd = -1
                if self._ended:
                    self._close_socket()
                else:
                    self._gate.modify(self._socket, select.EPOLLIN)
        self._reading.release()

    def _ring(self) -> None:
        """Wake the borrower, with the lock."""
        if self._wake_fd >= 0:
            os.eventfd_write(self._wake_fd, 1)

    def _receive_here(self, most: int = 1) -> bool:
        """Receive in the borrowing thread, up to `most` times while a frame is incomplete.

        Returns False if the link ends, as the loop will see. A thread that is interrupted while it
        works on received frames breaks the connection, as it is unknown how far it came.
        """
        try:
            for _ in range(most):
                if not self._receive() or self.splitter.is_empty or not self._may_be_read():
                    break
        except AGAIN:
            pass
        except BREAKS as error:
            self.break_off(why_it_breaks(error))
            return False
        except BaseException:
            self.break_off("the thread that read it was interrupted")
            raise
        return True


def _never() -> bool:
    return False


# A client's link, whose frames are read by a thread that waits for one of them.
#
# Otherwise the loop's thread would read the answer and wake the waiting one: one more wake-up, and
# two threads that need the interpreter at the same moment.


_SLICE = 60.0  # seconds, after which a thread that waits looks again


class DrivenLink(LendableLink):
    """A link that a waiting thread borrows in `drive()`."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._awaited: Future[Any] | None = None  # by the driver; written with the lock
        self._driver = 0
        self._own_wake_fd = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._poller = select.poll()
        self._poller.register(self._socket, select.POLLIN)
        self._poller.register(self._own_wake_fd, select.POLLIN)

    def drive(self, awaited: Future[Any], deadline: float | None) -> None:
        """Read frames in this thread until `awaited` is done, or `time.monotonic()` is `deadline`.

        It returns at once if another thread reads, and early if the connection ends, which the
        loop's thread handles. In any thread.
        """
        if not self._may_be_lent() or not self._reading.acquire(blocking=False):
            return
        try:
            if self._borrow(self._own_wake_fd) >= 0:
                with self._lock:
                    self._awaited, self._driver = awaited, get_ident()
                self._read_until_done(awaited, deadline)
        finally:
            self._awaited = None
            self._return()

    @property
    def is_driven_here(self) -> bool:
        """Whether this thread drives it, and is handling frames that it has read."""
        return self._awaited is not None and self._driver == get_ident()

    def ring(self, awaited: Future[Any]) -> None:
        """Wake the thread that drives until `awaited` is done. In any thread."""
        with self._lock:
            if self._awaited is awaited and self._driver != get_ident():
                self._ring()

    def _close_in_child(self) -> None:
        """In a forked child: close the copies."""
        super()._close_in_child()
        os.close(self._own_wake_fd)

    def _close_socket(self) -> None:
        super()._close_socket()
        if self._wake_fd < 0:
            os.close(self._own_wake_fd)

    def _read_until_done(self, awaited: Future[Any], deadline: float | None) -> None:
        left = _SLICE
        while not awaited.done() and not self._ended and not self._is_closing:
            if deadline is not None:
                left = min(_SLICE, deadline - time.monotonic())
                if left <= 0:
                    return
            ready = self._poller.poll(left * 1000)
            if len(ready) > 1 or (ready and ready[0][0] == self._own_wake_fd):
                os.eventfd_read(self._own_wake_fd)
            elif not self._receive_here():
                return
