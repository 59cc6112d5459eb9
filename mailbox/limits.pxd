from libc.stdint cimport int64_t, uint64_t

from callboard.core.memory.node cimport memory_order
from callboard.mailbox.delegation cimport CountedDelegation

cdef extern from "callboard/mailbox/limits.hpp" namespace "callboard" nogil:
    cdef cppclass Limits:
        Limits(int64_t capacity, int64_t timeout_ns, bint senders_pop) except +
        const int64_t capacity
        const int64_t timeout_ns
        const bint senders_pop
        int64_t reserve(int64_t wanted)
        void exceed(int64_t messages)
        void give_back(int64_t messages)
        void take_back(int64_t messages)
        bint only_counts()
        bint has_room()
        int64_t count()
        uint64_t add_dropped "dropped.fetch_add" (uint64_t, memory_order)
        int64_t get_peak "peak.load" (memory_order)
        uint64_t get_dropped "dropped.load" (memory_order)
        void set_runner "runner.store" (const void*, memory_order)
        const void* get_runner "runner.load" (memory_order)
        CountedDelegation popping
