"""The monotonic clock, readable without the interpreter."""

from posix.time cimport CLOCK_MONOTONIC, clock_gettime, timespec


cpdef int64_t monotonic_ns() noexcept nogil:
    """Return the monotonic clock in nanoseconds; its zero is arbitrary."""
    cdef timespec now
    clock_gettime(CLOCK_MONOTONIC, &now)
    return <int64_t> now.tv_sec * 1_000_000_000 + now.tv_nsec
