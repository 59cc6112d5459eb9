from libc.stdint cimport uint32_t, uint64_t

cdef extern from "callboard/scheduling/flow/parts.hpp" namespace "callboard" nogil:
    cdef cppclass Parts:
        @staticmethod
        uint32_t partition_of(uint64_t key, uint32_t partitions)
