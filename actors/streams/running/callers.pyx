"""The caller of a run: an actor or a thread, and on which worker."""

import threading

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
