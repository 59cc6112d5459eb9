from libc.stdint cimport uint32_t

cdef extern from "callboard/frequency/counting/keys.hpp" namespace "callboard" nogil:
    cdef cppclass IntegerKeys:
        pass

    cdef cppclass ByteKeys:
        pass

    cdef struct ByteRun:
        const char* data
        uint32_t size
        uint32_t kind

    cdef cppclass Blob "callboard::ByteKeys::Blob":
        pass

    ByteRun run_of "callboard::ByteKeys::run_of"(Blob* kept)
