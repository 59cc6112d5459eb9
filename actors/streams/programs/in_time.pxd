# Programs that take the rows of their inputs in order of time.
from callboard.streams.programs.merge cimport Merge
from callboard.streams.programs.time_order cimport TimeOrder


cdef class InTime(Merge):
    cdef TimeOrder order
    cdef tuple times_of   # for each input, the function that gives a row's time
    cdef object idle_after  # seconds; None: nobody is ever idle
    cdef list heard       # for each input, when something came from it last, by the run's clock

    cdef bint listen(self, list batches) except -1
    cdef int release(self, bint final, object origin, list into) except -1
    cdef int check(self, object time, bint is_row) except -1
    cdef int take_late(self, tuple entry, object origin, list into) except -1

    # For programs: entries (time, input, serial, row) that are ready, in order, maybe none.
    cdef int handle(self, list entries, object origin, list into) except -1
