# A run in which one operator seems faster: see virtual_speed_up.hpp.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from callboard.scheduling.flow.flow cimport SliceObserver

cdef extern from "callboard/streams/experiments/virtual_speed_up.hpp" namespace "callboard" nogil:
    ctypedef int64_t (*Pause)(int64_t nanoseconds, cbool holding) noexcept nogil

    cdef cppclass VirtualSpeedUp(SliceObserver):
        VirtualSpeedUp(size_t stages, Pause pause, cbool one_lock)
        void pass_on_to(SliceObserver* next)
        void set(vector[double] weights, cbool locked)
        double inserted()
        void arrives()
        void leaves(cbool is_full)
