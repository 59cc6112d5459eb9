from libc.stdint cimport int64_t, uint32_t
from libcpp.vector cimport vector

from callboard.scheduling.flow.flow cimport Pool, Rest
from callboard.streams.experiments.virtual_speed_up cimport VirtualSpeedUp
from callboard.streams.running.stages cimport GraphStages, Seat


cdef struct Lane:
    Pool* pool
    uint32_t number               # in it
    bint keeps_interpreter        # while it works
    int worker                    # where it lives, by its index


cdef class GraphFlow(GraphStages):
    cdef vector[Lane] lanes           # of all pools
    cdef readonly int64_t rows        # that came in; watermarks are none
    cdef vector[int64_t] rows_until   # and how many of them with each of the latest rounds, by its number
    cdef int64_t rows_seen            # at the last look at what they take
    cdef int64_t held_back_for        # nanoseconds for which senders have waited for room
    cdef int64_t held_back_since      # when the one did that waits now, or 0
    cdef vector[int64_t] busy_seen    # of the stages

    cdef VirtualSpeedUp* speed_up     # null before the first experiment

    cdef Rest run(self, uint32_t lane) noexcept nogil
    cdef object next_turn(self, Rest rest)
    cdef double share_of(self, Seat* seat) except -1
