from callboard.core.monitoring.actor_times cimport ActorTimes
from callboard.scheduling.forward cimport Cell


cdef class Handle:
    cdef Cell* cell

    cdef bint has_own_worker(self) noexcept


cdef class ClassTimes:
    cdef ActorTimes* times


cdef Handle actor_here()
