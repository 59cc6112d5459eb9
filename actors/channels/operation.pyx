"""Operations that may have to wait: tried at once, and again whenever the other side has done something."""

import time

from callboard.channels.end cimport ChannelEnd
from callboard.channels.pipe cimport Line
from callboard.channels.wait cimport ChannelWait, begin_wait
from callboard.scheduling.context cimport current_context
from callboard.scheduling.handle cimport Handle, actor_here

from callboard.channels.errors import ChannelTimeout
from callboard.core import checks
from callboard.core.errors import AskTimeout, CallboardError


cdef class Operation:
    """What `send()`, `receive()` and `select()` return: await it once.

    Nothing has happened before. Cancelled while it waits, it takes nothing and sends nothing.
    """

    def __await__(self):
        if self.begun:
            raise RuntimeError(f"{self!r} was awaited before")
        self.begun = True
        try:
            done = self.attempt()
        except BaseException as error:  # raised by the first step: `async for` wants it so
            self.error = error
            return self
        return self if done else self.wait()

    def __iter__(self):
        return self

    def __next__(self):
        if self.error is not None:
            raise self.error
        raise StopIteration(self.outcome)

    def __repr__(self):
        return f"<{type(self).__name__} at {self.end!r}>"

    def wait(self):
        """Try again after each wait."""
        cdef ChannelWait wait
        cdef double due = 0
        if self.timeout is not None:
            due = time.monotonic() + checks.seconds("timeout", self.timeout)
        while True:
            wait = begin_wait(self.end, self.line())
            if wait is not None:
                try:
                    if self.timeout is not None:
                        wait.expire_after(max(due - time.monotonic(), 0.0))
                    yield from wait.__await__()
                except AskTimeout:
                    wait.leave()
                    if self.is_done_after_all():
                        return self.outcome
                    raise ChannelTimeout(self.late()) from None
                except BaseException:
                    wait.leave()
                    self.is_done_after_all()
                    raise
            if self.attempt():
                return self.outcome

    def late(self):
        return f"{self!r} found nothing to do for {self.timeout} s"

    cdef Line line(self):
        """Where to wait."""
        return (<ChannelEnd>self.end).side()

    cdef bint attempt(self) except -1:
        """Do it, if it can be done just now."""
        raise NotImplementedError

    cdef bint is_done_after_all(self) except -1:
        """Take back what was offered; True if it cannot be taken back, because it was taken."""
        return False

    cdef object block(self, str name, str awaitable):
        """Do it, and let the calling thread sleep until then."""
        cdef ChannelWait wait
        cdef Handle here = actor_here()
        cdef double due = 0
        if self.timeout is not None:
            due = time.monotonic() + checks.seconds("timeout", self.timeout)
        if (current_context().worker != NULL or here is not None) and not (
                here is not None and here.has_own_worker()):
            raise CallboardError(
                f"{name}() would block a worker or its event loop: use `await {awaitable}()`, "
                "or spawn the actor with dedicated=True")
        while not self.attempt():
            wait = begin_wait(self.end, self.line())
            if wait is None:
                continue
            try:
                wait.result(None if self.timeout is None else max(due - time.monotonic(), 0.0))
            except AskTimeout:
                wait.leave()
                if self.is_done_after_all():
                    break
                raise ChannelTimeout(self.late()) from None
            except BaseException:
                wait.leave()
                self.is_done_after_all()
                raise
        return self.outcome
