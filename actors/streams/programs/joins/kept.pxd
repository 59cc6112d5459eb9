# Rows of a join, and which of them are in its windows.
from libc.stdint cimport int64_t, uint64_t


cdef class Kept:
    # A row that was taken.
    cdef Py_ssize_t side
    cdef object time        # its instant
    cdef int64_t serial
    cdef object row
    cdef uint64_t number    # of rows that were taken before it
    cdef uint64_t place     # of those, of its own stream
    cdef object key         # what it has to have in common with a partner, or None
    cdef tuple near         # what else is compared with a partner's, or None
    cdef object error       # what reading it raised, or None
    cdef bint is_alone      # it has no partner: it has an error, or a value is missing that is compared
    cdef bint gone          # it has left the window that it was found in
    # Set where rows are put out, and never taken back.
    cdef bint matched       # it had a partner
    cdef bint failed        # it gives nothing, and is nobody's partner
    cdef bint settled       # it has not failed, and will not


cdef class RowReader:
    # Reads of rows what is compared.
    cdef tuple keys         # for each stream, a function; or None
    cdef list near          # for each stream, functions
    cdef list comparisons   # of what these give
    cdef list firsts        # for each of these the first value, or None
    cdef uint64_t taken
    cdef uint64_t placed[2]

    cdef tuple distances(self)
    cdef int go_on(self, tuple distances) except -1
    cdef Kept read(self, tuple entry)
    cdef tuple values(self, Kept kept, list near)
    cdef int check(self, Py_ssize_t i, object value) except -1


cdef class KeptRows:
    # Rows of joins in a snapshot, by numbers of its own.
    cdef list rows
    cdef dict numbers       # address -> number
    cdef list ahead         # programs that go on once the end of their join does

    cdef int64_t number(self, Kept kept) except -1
    cdef list numbers_of(self, rows)
    cdef Kept row(self, int64_t number)
    cdef list rows_of(self, list numbers)


cdef class WindowRule:
    # Which rows are in a window.
    cdef readonly object within
    cdef readonly tuple lengths     # how long rows of either stream are in it, or None
    cdef bint is_even               # these are the same
    cdef readonly uint64_t most
    cdef readonly bint three_step
    cdef readonly bint is_strict

    cdef bint is_over(self, Kept kept, object time) except -1
    cdef bint is_first_over(self, Kept kept, Kept other) except -1
    cdef bint is_pushed_out(self, Kept kept, Kept latest) except -1
