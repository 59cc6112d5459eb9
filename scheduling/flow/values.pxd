from libc.stdint cimport int64_t, uint32_t, uint64_t

from callboard.core.memory.buffer cimport Buffer
from callboard.core.memory.node cimport Kind

cdef extern from "callboard/scheduling/flow/values.hpp" namespace "callboard" nogil:
    cdef cppclass Value:
        int64_t integer
        double real
        Buffer* buffer
        unsigned char* bytes  # a record's first 8; `rest` holds the others
        int64_t rest
        Kind kind
        uint32_t tag

    cdef cppclass Values:
        @staticmethod
        Values* make(uint64_t capacity)
        const Value* begin()
        uint64_t count()
        bint final
        void* error
        int64_t first
        void retain()
        bint drop()
        void free()

    cdef cppclass Output:
        Output()
        void expect(uint64_t values)
        void push(const Value& value)
        void take_over(const Value& value)
        void push_integer(int64_t integer, uint32_t tag)
        void push_real(double real, uint32_t tag)
        void push_record(const void* bytes16, uint32_t tag)
        void fail(const char* reason)
        const char* failure()
        uint64_t count()
        Values* take()
