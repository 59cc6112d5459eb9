from callboard.scheduling.forward cimport Cell


cdef class Handle:
    cdef Cell* cell

    cdef bint has_own_worker(self) noexcept


cdef Handle actor_here()
