from callboard._inside.answers.future cimport Future
from callboard.channels.pipe cimport Line


cdef class ChannelWait(Future):
    # A user of an end or of a selection who waits: an actor, a coroutine or a thread.
    cdef readonly object end
    cdef Line line
    cdef bint expires        # it has a time limit
    cdef object limit        # of a task of trio: in how many seconds, or None

    cdef int expire_after(self, double seconds) except -1
    cdef void leave(self) noexcept


cdef double now() except -1
cdef ChannelWait begin_wait(object end, Line line)
