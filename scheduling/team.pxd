from libc.stdint cimport int64_t

from callboard.scheduling.forward cimport Cell
from callboard.scheduling.roster cimport Roster


cdef class Team(Roster):
    cdef object drainer
    cdef readonly bint token
    cdef readonly bint steals     # its workers take each other's work
    cdef set running              # the workers whose thread has not ended
    cdef bint is_over             # the workers' threads have ended

    cdef bint wait_until(self, int64_t deadline) except -1
    cdef int retire(self, Cell* cell) except -1
    cdef int start_one(self, object worker) except -1
    cdef int end_if_last(self) except -1
    cdef int sweep(self) except -1
