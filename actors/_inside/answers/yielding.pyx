"""Threads outside the workers, which let them run now and then."""

from libc.stdint cimport int64_t

from callboard.core.clock cimport monotonic_ns
from callboard.core.memory.node cimport relax

cdef extern from "callboard/mailbox/mpsc.hpp" nogil:
    pass  # what a MpscTail is

cdef extern from "sched.h" nogil:
    int sched_yield()

cdef int64_t LONGEST_YIELD_NS = 2_000_000
cdef int PAUSES = 64


cdef void let_workers_run(MpscTail* receiver) noexcept:
    """Release the interpreter until the receiver has nothing left to do, or the longest yield is over."""
    cdef int64_t end
    with nogil:
        end = monotonic_ns() + LONGEST_YIELD_NS
        while not receiver.is_idle() and monotonic_ns() < end:
            for _ in range(PAUSES):
                relax()
            sched_yield()
