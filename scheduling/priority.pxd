from libc.stdint cimport int64_t, uint64_t

from callboard.scheduling.cell cimport Cell, ReadySet

cdef extern from "callboard/scheduling/ready.hpp" namespace "callboard" nogil:
    cdef cppclass ReadyQueue:
        pass

    cdef cppclass TrackedReady:
        void put(Cell* cell)
        void take(Cell* cell)
        Cell* first()
        uint64_t count()
        uint64_t passes()
        void* policy
        bint given_up

    cdef cppclass TwoLevelReady:
        TwoLevelReady(uint64_t patience)

    cdef cppclass WeightedReady:
        WeightedReady(int64_t ageing)

    cdef cppclass ShortestReady:
        ShortestReady(int64_t patience)

    cdef cppclass LongestReady:
        LongestReady(uint64_t window)

    ReadySet ready_set[Ready](Ready* ready)


cdef class PriorityPolicy:
    # What the worker calls, on its own thread and without the interpreter. A policy in Cython sets
    # it in __cinit__ or __init__; the base class's calls the Python methods.
    cdef ReadySet ready
    cdef public bint timed      # it needs each dispatch measured (Cell.busy_ns)
    cdef public bint counted    # it needs messages counted (Cell.limits.count())
    cdef public uint64_t patience
    cdef TrackedReady tracked


cdef class Fifo(PriorityPolicy):
    cdef ReadyQueue queue


cdef class TwoLevel(PriorityPolicy):
    cdef TwoLevelReady* cells


cdef class Weighted(PriorityPolicy):
    cdef WeightedReady* cells


cdef class ShortestFirst(PriorityPolicy):
    cdef ShortestReady* cells


cdef class LongestQueue(PriorityPolicy):
    cdef LongestReady* cells
