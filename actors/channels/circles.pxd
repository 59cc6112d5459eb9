from callboard.channels.pipe cimport ChannelSide
from callboard.channels.wait cimport ChannelWait


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
