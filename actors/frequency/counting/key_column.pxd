from libc.stdint cimport int64_t, uint64_t
from libcpp.vector cimport vector

from callboard.frequency.counting.keys cimport ByteRun

cdef extern from "callboard/frequency/counting/key_column.hpp" namespace "callboard" nogil:
    cdef cppclass KeyColumn:
        vector[int64_t] integers
        vector[ByteRun] runs
        vector[uint64_t] weights
        bint has_runs
        size_t size() const
        const uint64_t* weights_or_null() const
        uint64_t total() const
        void clear()
        bint make_runs()
        size_t packed_size() const
        void pack(void* memory) const
        bint take_integers(const int64_t* data, size_t count)
        bint take_packed(const void* memory)
        bint take_arrow(const void* schema, const void* array)
