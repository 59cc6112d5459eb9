from libc.stdint cimport uint64_t

cdef extern from "callboard/core/mix.hpp" namespace "callboard" nogil:
    uint64_t mix(uint64_t value)
    uint64_t random_number(uint64_t seed, uint64_t index)
    uint64_t hash_bytes(uint64_t seed, const char* data, size_t size)
