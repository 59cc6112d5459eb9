# The mixer of SplitMix64: see mix.hpp.
from libc.stdint cimport uint64_t

cdef extern from "callboard/core/mix.hpp" namespace "callboard" nogil:
    const uint64_t golden
    uint64_t mix(uint64_t value)
