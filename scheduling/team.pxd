from libc.stdint cimport int64_t

from callboard.scheduling.forward cimport Cell
from callboard.scheduling.worker_registry cimport WorkerRegistry


cdef class Team(WorkerRegistry):
    cdef object drainer
    cdef readonly bint token
    cdef readonly bint steals      # its workers take each other's work
    cdef readonly int level        # the number of workers that run; the others are suspended
    cdef public bint awaits_need   # the first worker does all the work, and the others have no threads yet
    cdef object followers          # with lanes on these workers
    cdef public object controller  # that sets the level, or None
    cdef set running               # the workers whose thread has not ended
    cdef bint is_over              # the workers' threads have ended

    cdef bint wait_until(self, int64_t deadline) except -1
    cdef int end_dedicated(self, Cell* cell) except -1
    cdef int start_one(self, object worker) except -1
    cdef int end_if_last(self) except -1
    cdef int sweep(self) except -1
