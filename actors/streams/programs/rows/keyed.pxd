# Programs whose states are objects.
from libc.stdint cimport int64_t

from callboard.streams.programs.rows.stateful cimport Stateful
from callboard.streams.programs.rows.tables cimport Table


cdef class Objects(Stateful):
    cdef object make
    cdef bint drops
    cdef bint silent
    cdef bint skips
    cdef bint paired

    cdef object fresh(self, Table table)
    cdef object state_of(self, Table table, object key, int64_t serial)
    cdef list outputs_of_row(self, object key, object result)
    cdef list named(self, object key, list outputs)


cdef class Timed(Objects):
    cdef int schedule_row(self, Table table, object key, object state, bint is_new) except -1
    cdef int schedule(self, Table table, object key, object state) except -1
