# A running graph.
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t
from libcpp.vector cimport vector

from callboard.scheduling.flow.flow cimport Flow, Rest
from callboard.scheduling.flow.heuristics cimport OperatorView
from callboard.streams.programs.program cimport Ending, Exit


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
    cdef readonly uint32_t window
    cdef uint32_t lanes               # added so far
    cdef bint connected               # the graph is whole
    cdef Ending ending

    cdef int check(self, bint connected) except -1
    cdef void drop_all(self) noexcept
    cdef void keep(self, object what) noexcept
    cdef OperatorView view(self, size_t i)
    cdef object next_turn(self, Rest rest)
