# Programs that do not wait for inputs which have fallen silent.
from callboard.streams.programs.merging.merge cimport Merge


cdef class IdleSources(Merge):
    cdef object idle_timeout  # seconds; None: nobody is ever idle
    cdef list heard         # for each input, when something came from it last, by the run's clock

    cdef bint find_idle(self, list batches) except -1
