"""The times of a class of actors: workers note them, and any thread reads their distributions."""

from libc.stdint cimport uint32_t, uint64_t

from callboard.core.monitoring.actor_times cimport BUCKETS, ActorTimes, TimeHistogram
from callboard.core.sealed cimport only_by_runtime

from callboard.core.monitoring.time_distribution import TimeDistribution


cdef class ClassTimes:
    """The times of the actors of one class, ended ones included. It lives as long as its actors' cells."""

    def __cinit__(self, object key, uint32_t workers):
        only_by_runtime(key, self, "times of a class come from its system")
        self.times = new ActorTimes(workers)

    def __dealloc__(self):
        del self.times

    def read(self):
        """Return two `TimeDistribution`: of processing times, and of times in the mailbox. Any thread."""
        return distributions_of(self.times)


cdef tuple distributions_of(ActorTimes* times):
    """Return what `ClassTimes.read()` does."""
    cdef size_t bucket
    cdef uint64_t count
    cdef uint64_t handled_ns = times.handled_ns()
    cdef uint64_t waited_ns = times.waited_ns()
    cdef list handled = []
    cdef list waited = []
    for bucket in range(BUCKETS):
        count = times.handled(bucket)
        if count:
            handled.append((TimeHistogram.bound_of(bucket), count))
        count = times.waited(bucket)
        if count:
            waited.append((TimeHistogram.bound_of(bucket), count))
    return TimeDistribution(handled_ns, tuple(handled)), TimeDistribution(waited_ns, tuple(waited))
