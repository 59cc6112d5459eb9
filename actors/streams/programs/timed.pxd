# Programs whose states wait for event time.
from callboard.streams.programs.keyed cimport Objects
from callboard.streams.programs.stateful cimport Table


cdef class Timed(Objects):
    cdef int schedule(self, Table table, object key, object state) except -1
