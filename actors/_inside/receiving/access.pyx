"""One at a time for an actor whose messages run on the event loop while its worker begins others.

A worker waits for the end of a step, which is short. A step does not wait for a dispatch, since that would hold up
the loop: it yields a future, and goes on when the dispatch is over.
"""

import asyncio
import threading

cimport cython

from callboard.core.asserting cimport holds


cdef class Access:
    """Lets one at a time run an actor's code."""

    def __cinit__(self):
        self.lock = threading.Lock()
        self.steps = []
        self.begun = []

    cdef object enter_on_loop(self):
        """Enter, and return None; or return a future that a step is to yield before it tries again."""
        if self.lock.acquire(False):
            return None
        future = asyncio.get_running_loop().create_future()
        future._asyncio_future_blocking = True  # as its __await__ does
        loop = future.get_loop()
        with cython.critical_section(self):
            self.loop = loop
            self.steps.append(future)
        # A dispatch that left before that has not seen the step; one that leaves later does.
        if not self.lock.acquire(False):
            return future
        future.cancel()  # nobody waits for it
        return None

    cdef void leave_on_loop(self) noexcept:
        self.lock.release()

    cdef void enter_on_worker(self) noexcept:
        """Wait for the end of the step in work, with the interpreter released."""
        self.lock.acquire()
        assert holds(not self.begun)

    cdef void leave_on_worker(self) noexcept:
        self.lock.release()
        with cython.critical_section(self):
            waits = len(self.steps) != 0
        if waits:
            try:
                self.loop.call_soon_threadsafe(self.resume_steps)
            except RuntimeError:
                pass  # the loop was closed

    def resume_steps(self):
        """Have the steps go on that had to wait. On the loop's thread."""
        with cython.critical_section(self):
            steps, self.steps = self.steps, []
        for future in steps:
            if not future.done():
                future.set_result(None)
