from libc.stdint cimport int64_t

cpdef int64_t monotonic_ns() noexcept nogil
