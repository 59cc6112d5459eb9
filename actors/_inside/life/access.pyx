"""One at a time for an actor whose messages run on the event loop while its worker begins others.

A worker waits for the end of a step, which is short. A step does not wait for a dispatch, since that would hold up
the loop: it yields a future, and goes on when the dispatch is over. Steps that wait keep their order, and later ones
come behind them, so that messages begin in theirs.
"""

import asyncio
import threading

cimport cython

from callboard.core.asserting cimport holds


cdef class Access:
    """Lets one at a time run an actor's code."""

    def __cinit__(self):
        self.lock = threading.Lock()
        self.waiting = {}
        self.begun = []
        self.unbegun = {}

    cdef object enter_on_loop(self, object step):
        """Let a step enter, and return None; or return a future that it is to yield before it tries again."""
        if self.try_enter(step):
            return None
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        future._asyncio_future_blocking = True  # as its __await__ does
        with cython.critical_section(self):
            self.loop = loop
            self.waiting[step] = future  # in its old place, if it has one
        # A dispatch that left before that has not seen the step; one that leaves later does.
        if not self.try_enter(step):
            return future
        future.cancel()  # nobody waits for it
        return None

    cdef bint try_enter(self, object step) except -1:
        if not self.waiting:
            return self.lock.acquire(False)
        if next(iter(self.waiting)) is not step or not self.lock.acquire(False):
            return False
        del self.waiting[step]
        return True

    cdef void leave_on_loop(self) noexcept:
        self.lock.release()
        if self.waiting:
            self.resume_steps()

    cdef int let_go_on(self, object step) except -1:
        """A step does not want to enter any more."""
        if self.waiting.pop(step, None) is not None:
            self.resume_steps()
        return 0

    cdef void enter_on_worker(self) noexcept:
        """Wait for the end of the step in work, with the interpreter released."""
        self.lock.acquire()
        assert holds(not self.begun)

    cdef void leave_on_worker(self) noexcept:
        self.lock.release()
        with cython.critical_section(self):
            waits = len(self.waiting) != 0
        if waits:
            try:
                self.loop.call_soon_threadsafe(self.resume_steps)
            except RuntimeError:
                pass  # the loop was closed

    def resume_steps(self):
        """Have the first step that waits go on. On the loop's thread."""
        for future in self.waiting.values():
            if not future.done():
                future.set_result(None)
            return
