# Rows of several sources, put into one order.
from libc.stdint cimport int64_t

from callboard.streams.programs.merging.merge cimport IdleSources


cdef class TimeOrder:
    cdef readonly object delay_threshold  # how far a row may be behind the latest of its source; None: not at all
    cdef readonly list come_to            # the time that each source has come to, or None
    cdef list latest                      # the time of the latest row of each source, or None
    cdef list queues                      # for each source, rows as they came, each not behind the one before
    cdef list behind                      # a heap of the others
    cdef list idle                        # for each source, whether nobody waits for it
    cdef tuple passed                     # what was handed out while one was idle goes to this (time, source); or None

    cdef bint is_late(self, Py_ssize_t source, object time) except -1
    cdef int add(self, Py_ssize_t source, object time, int64_t serial, object row) except -1
    cdef int advance(self, Py_ssize_t source, object time) except -1
    cdef object bound(self)
    cdef tuple bound_of_awake(self)
    cdef list ready(self)
    cdef list remaining(self)

    # For a snapshot: what the sources have come to, and the entries that wait, in columns; and back.
    cdef tuple distances(self)
    cdef int go_on(self, tuple distances) except -1
    cdef list waiting(self)
    cdef int wait_for(self, list columns) except -1


cdef class InTime(IdleSources):
    cdef TimeOrder order
    cdef tuple times_of   # for each input, the function that gives a row's time

    cdef int release(self, bint final, object lineage, list into) except -1
    cdef int check(self, object time, bint is_row) except -1
    cdef int take_late(self, tuple entry, object lineage, list into) except -1

    # For programs: entries (time, input, serial, row) that are ready, in order, maybe none.
    cdef int handle(self, list entries, object lineage, list into) except -1
