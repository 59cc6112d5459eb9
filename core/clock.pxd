from libc.stdint cimport int64_t

cdef extern from "callboard/core/clock.hpp" namespace "callboard" nogil:
    int64_t monotonic_ns()
    void wake_on_time()

# The longest sleep of a waiting thread before it looks for signals (Ctrl-C), in nanoseconds.
cdef enum:
    SIGNAL_CHECK_NS = 50_000_000
