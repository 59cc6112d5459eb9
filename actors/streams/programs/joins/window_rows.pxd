# The rows of a join, and the rules of its windows.
from libc.stdint cimport int64_t, uint64_t


cdef class WindowRow:
    # A row of a join.
    cdef Py_ssize_t side
    cdef object time        # its instant
    cdef int64_t serial
    cdef object row
    cdef uint64_t number    # how many rows were taken before it
    cdef uint64_t place     # how many of those are of its own stream
    cdef object key         # which its partners have too, or None
    cdef tuple near         # other values that are compared, or None
    cdef object error       # the exception at its reading, or None
    cdef bint is_alone      # it has no partner: it has an error, or a compared value is missing
    cdef bint gone          # it has left the window that it was found in
    # Set where outputs are made, and never unset.
    cdef bint matched       # it had a partner
    cdef bint failed        # it has no output and is no partner
    cdef bint settled       # it has not failed, and will not


cdef class RowReader:
    # Reads the compared values of rows.
    cdef tuple keys         # for each stream, a function; or None
    cdef list near          # for each stream, functions
    cdef list comparisons   # of what these give
    cdef list firsts        # the first value for each of these, or None
    cdef uint64_t taken
    cdef uint64_t placed[2]

    cdef tuple distances(self)
    cdef int go_on(self, tuple distances) except -1
    cdef WindowRow read(self, tuple entry)
    cdef tuple values(self, WindowRow kept, list near)
    cdef int check(self, Py_ssize_t i, object value) except -1


cdef class SavedRows:
    # Rows of joins in a snapshot, by their numbers there.
    cdef list rows
    cdef dict numbers       # address -> number
    cdef list ahead         # programs that go on once the end of their join does

    cdef int64_t number(self, WindowRow kept) except -1
    cdef list numbers_of(self, rows)
    cdef WindowRow row(self, int64_t number)
    cdef list rows_of(self, list numbers)


cdef class WindowRule:
    # The rule of which rows are in a window.
    cdef readonly object within
    cdef readonly tuple lengths     # how long rows of either stream are in it, or None
    cdef bint is_even               # these are the same
    cdef readonly uint64_t most
    cdef readonly bint three_step
    cdef readonly bint is_strict

    cdef bint is_over(self, WindowRow kept, object time) except -1
    cdef bint is_first_over(self, WindowRow kept, WindowRow other) except -1
    cdef bint is_pushed_out(self, WindowRow kept, WindowRow latest) except -1
