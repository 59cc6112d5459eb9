from libc.stdint cimport int64_t

from callboard.scheduling.cell cimport Cell, Crew


cdef class Team:
    # The crew that the workers of one system share, and the workers.
    cdef Crew* crew
    cdef readonly list workers
    cdef readonly list dedicated  # replaced as a whole
    cdef object lock
    cdef object drainer
    cdef readonly bint token
    cdef readonly str monitoring  # the level
    cdef readonly bint timed

    cdef bint is_over             # the workers' threads have ended

    cdef bint wait_until(self, int64_t deadline) except -1
    cdef int retire(self, Cell* cell) except -1
    cdef int sweep(self) except -1
