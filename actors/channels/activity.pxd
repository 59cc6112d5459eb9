"""The activity of a channel's end, for Cython: see `activity.hpp`."""

from libc.stdint cimport int64_t, uint64_t

from callboard.scheduling.forward cimport Context

cdef extern from "callboard/channels/activity.hpp" namespace "callboard" nogil:
    const char end_closed
    const char end_replaced

    cdef cppclass EndActivity:
        void restart(int64_t channel, bint sends)
        void begin(const Context* context)
        void note_moved(uint64_t values)
        void note_blocked()
        void note_end(char state)
        uint64_t moved()
        char state()
