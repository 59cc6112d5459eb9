from callboard._inside.answers.future cimport Future
from callboard.channels.pipe cimport ChannelSide, Line


cdef class ChannelWait(Future):
    # A wait of an actor, a coroutine or a thread, at an end or a selection.
    cdef readonly object end
    cdef Line line
    cdef bint expires        # it has a time limit
    cdef object limit        # of a task of trio: seconds, or None

    cdef int expire_after(self, double seconds) except -1
    cdef void leave(self) noexcept


cdef double now() except -1
cdef ChannelWait begin_wait(object end, Line line)


cdef class DeadlockDetector:
    cdef object timers
    cdef bint manual             # its system searches when it is idle, without timers
    cdef readonly list sides     # ChannelSides with waits for room
    cdef bint is_due             # a search is scheduled
    cdef double pause            # before the next search, in seconds

    cdef bint add(self, ChannelSide side) noexcept
    cdef void note(self, ChannelSide side) noexcept
    cdef list still_full(self)


cdef int note_full(ChannelWait wait) except -1
