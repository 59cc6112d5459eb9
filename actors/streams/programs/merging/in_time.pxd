# Programs that take the rows of their inputs in order of time.
from callboard.streams.programs.merging.idle_sources cimport IdleSources
from callboard.streams.programs.merging.time_order cimport TimeOrder


cdef class InTime(IdleSources):
    cdef TimeOrder order
    cdef tuple times_of   # for each input, the function that gives a row's time

    cdef int release(self, bint final, object lineage, list into) except -1
    cdef int check(self, object time, bint is_row) except -1
    cdef int take_late(self, tuple entry, object lineage, list into) except -1

    # For programs: entries (time, input, serial, row) that are ready, in order, maybe none.
    cdef int handle(self, list entries, object lineage, list into) except -1
