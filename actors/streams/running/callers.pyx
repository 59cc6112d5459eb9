"""Who calls a run: an actor or a thread, and on which worker."""

import threading

from callboard.scheduling.cell cimport Context
from callboard.scheduling.context cimport current_context


def caller_here():
    """Return who calls, as one that rows may come from: the actor in whose handler that is, else the thread.
    An actor may go from thread to thread."""
    cdef Context* context = current_context()
    if context.current != NULL:
        return <object>context.current.owner
    return threading.current_thread()


def worker_here():
    """Return the worker whose thread calls; None on another thread."""
    cdef Context* context = current_context()
    return <object>context.worker.owner if context.worker != NULL else None
