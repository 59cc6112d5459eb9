from libc.stdint cimport uint32_t

cdef extern from "callboard/frequency/counting/keys.hpp" namespace "callboard" nogil:
    # A run of bytes; what differs in `kind` is never equal.
    cdef struct ByteRun:
        const char* data
        uint32_t size
        uint32_t kind

    const uint32_t integer_key
    const uint32_t text_key
    const uint32_t bytes_key
    const uint32_t tuple_key
