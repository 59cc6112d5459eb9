from libc.stdint cimport uint8_t


cdef bint is_utf8(const uint8_t* at, const uint8_t* end) noexcept nogil
