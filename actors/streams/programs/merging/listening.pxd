# Programs that do not wait for inputs which have fallen silent.
from callboard.streams.programs.merging.merge cimport Merge


cdef class Listening(Merge):
    cdef object idle_after  # seconds; None: nobody is ever idle
    cdef list heard         # for each input, when something came from it last, by the run's clock

    cdef bint listen(self, list batches) except -1
