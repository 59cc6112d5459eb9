"""Locks for the calls of a run, and who the caller is: an actor or a thread, and its worker.

Such a call may be interrupted. Ctrl-C comes between any two steps of a function in Python: between those that take a
lock and remember that, too. Here it does not come.
"""

cimport cython
import threading

from cpython.pythread cimport PyThread_get_thread_ident

from callboard.scheduling.handle cimport actor_here
from callboard.scheduling.worker cimport worker_here as scheduling_worker


def caller_here():
    """Return the caller, as one that rows may come from: the actor in whose handler that is, else the thread. An
    actor may go from thread to thread."""
    actor = actor_here()
    return threading.current_thread() if actor is None else actor


def worker_here():
    """Return the worker whose thread calls; None on another thread."""
    return scheduling_worker()


@cython.final
cdef class CallLock:
    """A lock. Each call that wants it has a LockHold of its own."""

    cdef object lock
    cdef object holder  # the thread's number, or None

    def __init__(self):
        self.lock = threading.Lock()

    def hold(self):
        """Return a call's part in it; the call has not got it yet."""
        cdef LockHold hold = LockHold.__new__(LockHold)
        hold.lock = self
        return hold

    def locked(self):
        """Tell whether any call has it."""
        return self.lock.locked()


@cython.final
cdef class LockHold:
    """A call's part in a lock, of one thread."""

    cdef CallLock lock
    cdef bint has

    def acquire(self, double seconds=0.0):
        """Take the lock within so many seconds; whether it was free by then."""
        if not self.lock.lock.acquire(True, seconds):
            return False
        self.has = True
        self.lock.holder = PyThread_get_thread_ident()
        return True

    def release(self):
        """Let the lock go, if this call has it."""
        if self.has:
            self.has = False
            self.lock.holder = None
            self.lock.lock.release()

    @property
    def is_inner(self):
        """Whether another call has it that this one is in the middle of, and cannot wait for."""
        return not self.has and self.lock.holder == PyThread_get_thread_ident()

    def is_free(self):
        """Tell whether nobody has it."""
        return not self.lock.locked()
