# A pause of a thread, which may hold the interpreter: see pausing.hpp.
from libc.stdint cimport int64_t
from libcpp cimport bool as cbool

cdef extern from "callboard/streams/experiments/pausing.hpp" namespace "callboard" nogil:
    int64_t pause(int64_t nanoseconds, cbool holding) noexcept
