# Programs that take the rows of Arrow batches in order of time.
from libc.stdint cimport int64_t

from callboard.streams.programs.merging.merge cimport IdleSources
from callboard.streams.programs.merging.time_order cimport TimeOrder


cdef class BatchesInTime(IdleSources):
    cdef object times_of   # reads the times of batches
    cdef object order      # the rows that wait for theirs
    cdef TimeOrder early   # watermarks, until a first batch says what times are
    cdef dict given        # lengths of time
    cdef dict lengths      # the same; since the first batch, on the scale of its times
    cdef object output     # the rows that wait for a batch to be full
    cdef list layouts      # of each input, how its columns are laid out, since its first batch

    cdef int begin(self, object scale, list points, dict lengths) except -1
    cdef list points(self, object scale)
    cdef dict lengths_on(self, object scale)
    cdef int release(self, bint final, object lineage, list into) except -1
    cdef int put_out(self, bint final, object lineage, list into) except -1
    cdef int take_late(self, object late, object lineage, list into) except -1
    cdef object expected(self, Py_ssize_t which)

    # For programs: columns of numbers that go with a batch's rows, of a schema; the schema of outputs; rows of each
    # input that are ready, or None, in order; the time of the oldest row that may be part of an output, or None.
    cdef list columns_of(self, Py_ssize_t which, object batch, object schema, int64_t serial)
    cdef object columns_out(self, bint final)
    cdef int handle(self, list ready, bint final, object lineage, list into) except -1
    cdef object oldest(self)

    # For a snapshot: what this has as values, and what it has as chunks of rows; and back, the values first.
    cdef tuple values(self)
    cdef list chunks(self)
    cdef int go_on(self, tuple head) except -1
    cdef int load(self, str what, Py_ssize_t which, object batch, object number, object times, tuple columns) except -1
