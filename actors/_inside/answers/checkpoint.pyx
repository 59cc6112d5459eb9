"""A place at which a coroutine lets others run."""

from callboard._inside.answers.future cimport driven_by_worker


cdef class Checkpoint(Future):
    """Await it to let other actors, or other tasks of the event loop, run before this one goes on.

    LPEL's yield (Prokesch 2011, section 4.3.3).
    """

    def __init__(self):
        pass

    @property
    def _what(self):
        return None  # it is ready

    def __await__(self):
        if driven_by_worker():
            yield self  # the dispatcher puts the actor behind those that are ready
        else:
            yield  # as asyncio.sleep(0) does
