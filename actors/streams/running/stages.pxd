from libc.stdint cimport int64_t, uint32_t
from libcpp.vector cimport vector

from callboard.scheduling.flow.flow cimport Flow, Pool
from callboard.scheduling.flow.fused_stage cimport FusedStage
from callboard.scheduling.flow.heuristics cimport OperatorView
from callboard.scheduling.flow.keyed_stage cimport KeyedStage
from callboard.scheduling.flow.stage cimport Figures, LaneKinds, Stage
from callboard.streams.programs.program cimport Ending, Exit, Program


# Where a program works.
cdef struct Seat:
    Stage* stage
    Stage* divider                # before it, or null
    KeyedStage* keyed             # the stage, if it has a divider
    uint32_t partitions           # of that one
    size_t pool                   # whose lanes work there, if the stage has one program, or a chain
    FusedStage* fused             # the stage, if it is one, and the program a member; or null
    uint32_t member               # of several programs that are one stage
    Figures figures               # what it did there


cdef class GraphStages:
    cdef object __weakref__
    cdef Flow* flow
    cdef dict programs                # by their numbers in the plan
    cdef dict places                  # by the same: where the program's seat is among these
    cdef vector[Seat] seats
    cdef list readers                 # until they are connected: (program or -1, port, program, input)
    cdef list of_stages               # the program of each stage, in the stages' order
    cdef tuple kept                   # (what the stages point to, the others or None)
    cdef vector[Exit] entries         # the graph's edges in; a port is the number of an entry
    cdef vector[void*] slots          # the batches for these, while a round is admitted
    cdef object heuristic
    cdef bint heuristic_failed
    cdef bint one_by_one
    cdef bint keeps_interpreter       # lanes do, while they work on Python stages
    cdef FusedStage* caller           # what the caller's thread runs, or null
    cdef bint caller_keeps            # the interpreter, meanwhile
    cdef int64_t slice_ns
    cdef readonly uint32_t window
    cdef vector[Pool*] pools
    cdef bint connected               # the graph is whole
    cdef Ending ending

    cdef int check(self, bint connected) except -1
    cdef int keep(self, object what) except -1
    cdef Pool* pool(self, size_t number) except NULL
    cdef int find_parts(self) except -1
    cdef int add_program(self, number, Program program, sources) except -1
    cdef Seat* seat(self, number) except NULL
    cdef void drop_all(self) noexcept
    cdef OperatorView view(self, Stage* stage)


cdef LaneKinds lanes_of(str kind) except? 0
