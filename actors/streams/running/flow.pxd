# A running graph.
from cpython.object cimport PyObject
from libc.stdint cimport int64_t, uint32_t
from libcpp.vector cimport vector

from callboard.scheduling.flow.flow cimport Flow, Pool, Rest
from callboard.scheduling.flow.heuristics cimport OperatorView
from callboard.scheduling.flow.stage cimport Stage
from callboard.streams.programs.program cimport Ending, Exit


cdef struct Lane:
    Pool* pool
    uint32_t number               # in it


cdef class GraphFlow:
    cdef object __weakref__
    cdef Flow* flow
    cdef list programs                # in the order in which they were added
    cdef list readers                 # until they are connected: (program or -1, port, program, input)
    cdef list of_stages               # the program of each stage, in the stages' order
    cdef vector[PyObject*] kept       # owned
    cdef vector[Exit] entries         # the graph's edges in; a port is the number of an entry
    cdef vector[void*] slots          # the batches for these, while a round is admitted
    cdef object heuristic
    cdef bint heuristic_failed
    cdef bint one_by_one
    cdef bint keeps_interpreter       # while a lane works on Python stages
    cdef int64_t slice_ns
    cdef readonly uint32_t window
    cdef vector[Pool*] pools
    cdef vector[Lane] lanes           # of all pools
    cdef bint connected               # the graph is whole
    cdef Ending ending

    cdef int check(self, bint connected) except -1
    cdef void drop_all(self) noexcept
    cdef void keep(self, object what) noexcept
    cdef OperatorView view(self, Stage* stage)
    cdef Pool* pool(self, size_t number) except NULL
    cdef Rest run(self, uint32_t lane) noexcept nogil
    cdef object next_turn(self, Rest rest)
