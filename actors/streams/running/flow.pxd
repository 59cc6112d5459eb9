# A running graph.
from cpython.object cimport PyObject
from libc.stdint cimport uint32_t
from libcpp.vector cimport vector

from callboard.scheduling.flow.flow cimport Edge, FlowOf, LaneKinds, Rest, Stage, StageKind
from callboard.streams.programs.program cimport Program
from callboard.streams.programs.work cimport Ending, Work
from callboard.streams.native cimport NativeProgram


cdef class Flow:
    cdef object __weakref__
    cdef FlowOf* flow
    cdef vector[Stage*] inlets        # of the nodes, by their numbers
    cdef vector[Stage*] outlets
    cdef vector[Stage*] all_stages
    cdef vector[Edge] entry_edges
    cdef vector[void*] slots          # the batches for these, while a round is admitted
    cdef list entry_of                # for each of them, which entry
    cdef list links                   # (node, port, to node, input)
    cdef list works                   # of the stages, in their order
    cdef vector[PyObject*] kept       # owned
    cdef list outlet_works
    cdef list inlet_works
    cdef list entry_to_native         # for each of the entries' edges
    cdef object heuristic
    cdef bint heuristic_failed
    cdef bint one_by_one
    cdef bint keeps_interpreter       # while a lane works on Python stages
    cdef readonly uint32_t window
    cdef uint32_t lanes               # added so far
    cdef bint connected               # the graph is whole
    cdef Ending ending

    cdef Stage* stage_of(self, Work work, Program program, LaneKinds kinds, StageKind kind, int inputs,
                         int partitions, int most_lanes)
    cdef int add_native(self, NativeProgram program, LaneKinds kinds, int partitions, int most_lanes,
                        Stage** inlet, Stage** outlet) except -1
    cdef int check(self, bint connected) except -1
    cdef int give_work(self, Work work, Program program, int inputs) except -1
    cdef void drop_all(self) noexcept
    cdef void keep(self, object what) noexcept
    cdef OperatorView view(self, int i)
    cdef object next_turn(self, Rest rest)


cdef class OperatorView:
    cdef Flow flow
    cdef Stage* stage
    cdef readonly str name
