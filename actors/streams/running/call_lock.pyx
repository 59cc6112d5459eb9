"""Locks for the calls of a run, and the caller: an actor or a thread, and its worker.

Such a call may be interrupted. Ctrl-C comes between any two steps of a function in Python: between those that take a
lock and remember that, too. Here it does not come.
"""

cimport cython
import threading

from cpython.pythread cimport PyThread_get_thread_ident

from callboard.scheduling.handle cimport actor_here
from callboard.scheduling.worker cimport worker_here as scheduling_worker


def caller_here():
    """Return the sender of rows: the actor in whose handler this is, else the thread. An actor may change threads."""
    actor = actor_here()
    return threading.current_thread() if actor is None else actor


def worker_here():
    """Return the worker whose thread calls; None on another thread."""
    return scheduling_worker()


@cython.final
cdef class CallLock:
    """A lock for the calls of a run. Each call takes it by its own LockHold."""

    cdef object lock
    cdef object holder  # the thread's number, or None

    def __init__(self):
        self.lock = threading.Lock()

    def hold(self):
        """Return a hold for a call, which does not have the lock yet."""
        cdef LockHold hold = LockHold.__new__(LockHold)
        hold.lock = self
        return hold

    def locked(self):
        """Tell whether any call has it."""
        return self.lock.locked()


@cython.final
cdef class LockHold:
    """One call's hold of a lock, by one thread."""

    cdef CallLock lock
    cdef bint has

    def acquire(self, double seconds=0.0):
        """Take the lock, if it is free within `seconds`. Return whether it was."""
        if not self.lock.lock.acquire(True, seconds):
            return False
        self.has = True
        self.lock.holder = PyThread_get_thread_ident()
        return True

    def release(self):
        """Release the lock, if this call has it."""
        if self.has:
            self.has = False
            self.lock.holder = None
            self.lock.lock.release()

    @property
    def is_inner(self):
        """Whether an outer call of this thread has the lock, so that waiting would never end."""
        return not self.has and self.lock.holder == PyThread_get_thread_ident()

    def is_free(self):
        """Tell whether no call has it."""
        return not self.lock.locked()
