from callboard._inside.answers.future cimport Future
from callboard.channels.pipe cimport ChannelSide, Line


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


cdef class CircleWatch:
    cdef object timers
    cdef bint manual             # its system looks when it is idle, and at no time
    cdef readonly list sides     # ChannelSides at which somebody waits for room
    cdef bint is_due             # a look is to come
    cdef double pause            # before the next look, in seconds

    cdef bint add(self, ChannelSide side) noexcept
    cdef void note(self, ChannelSide side) noexcept
    cdef list still_full(self)


cdef int note_full(ChannelWait wait) except -1
