from callboard.core.monitoring.actor_times cimport ActorTimes


cdef class ClassTimes:
    cdef ActorTimes* times

cdef tuple distributions_of(ActorTimes* times)
