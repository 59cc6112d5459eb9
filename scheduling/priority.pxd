from libc.stdint cimport uint64_t

from callboard.scheduling.cell cimport Cell
from callboard.scheduling.worker_core cimport ReadySet

cdef extern from "callboard/scheduling/priority.hpp" namespace "callboard" nogil:
    cdef cppclass ReadyQueue:  # made by `new`, because it has its own cache lines
        pass

    cdef cppclass TrackedReady:
        void put(Cell* cell)
        void take(Cell* cell)
        Cell* first()
        uint64_t count()
        uint64_t passes()
        void* policy
        bint given_up

    ReadySet ready_set[Ready](Ready* ready)
    ReadySet owned_ready_set[Ready](Ready* ready)


cdef class ReadyOrder:
    cdef ReadySet ready         # the functions that the worker calls, on its own thread and without the interpreter
    cdef bint timed             # it needs each dispatch measured (Cell.busy_ns)
    cdef bint counted           # it needs messages counted (Cell.limits.count())


cdef class PriorityPolicy(ReadyOrder):
    # A policy in Cython sets the functions of `ready` in __cinit__ or __init__; those of this class call the Python
    # methods.
    cdef public uint64_t patience
    cdef TrackedReady tracked
