from libc.stdint cimport int64_t

cdef extern from "callboard/core/clock.hpp" namespace "callboard" nogil:
    int64_t monotonic_ns()
