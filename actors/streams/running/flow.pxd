from libc.stdint cimport int64_t, uint32_t
from libcpp.vector cimport vector

from callboard.scheduling.flow.flow cimport Flow, Pool, Rest
from callboard.scheduling.flow.fused_stage cimport FusedStage
from callboard.scheduling.flow.heuristics cimport OperatorView
from callboard.scheduling.flow.keyed_stage cimport KeyedStage
from callboard.scheduling.flow.stage cimport Figures, LaneKinds, Stage
from callboard.streams.experiments.virtual_speed_up cimport VirtualSpeedUp
from callboard.streams.programs.program cimport Ending, Exit, Program


# Where a program works.
cdef struct StagePlace:
    Stage* stage
    Stage* divider                # before it, or null
    KeyedStage* keyed             # the stage, if it has a divider
    uint32_t partitions           # of that one
    size_t pool                   # whose lanes work there, if the stage has one program, or a chain
    FusedStage* fused             # the stage, if it is one, and the program a member; or null
    uint32_t member               # of several programs that are one stage
    Figures figures               # what it did there


# A lane: an actor that works on stages.
cdef struct Lane:
    Pool* pool
    uint32_t number               # in it
    bint keeps_interpreter        # while it works
    int worker                    # where it lives, by its index


cdef class GraphFlow:
    cdef object __weakref__
    cdef Flow* flow
    cdef dict programs                # by their numbers in the plan
    cdef dict place_numbers           # of programs, by the same, among these
    cdef vector[StagePlace] places
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
    cdef int64_t time_slice_ns
    cdef readonly uint32_t window
    cdef vector[Pool*] pools
    cdef bint connected               # the graph is whole
    cdef Ending ending
    cdef vector[Lane] lanes           # of all pools
    cdef readonly int64_t rows        # that came in; watermarks are none
    cdef vector[int64_t] rows_until   # and how many of them with each of the latest rounds, by its number
    cdef int64_t rows_seen            # at the last look at what they take
    cdef int64_t held_back_for        # nanoseconds for which senders have waited for room
    cdef int64_t held_back_since      # when the one did that waits now, or 0
    cdef vector[int64_t] busy_seen    # of the stages

    cdef VirtualSpeedUp* speed_up     # null before the first experiment

    cdef int check(self, bint connected) except -1
    cdef int keep(self, object what) except -1
    cdef Pool* pool(self, size_t number) except NULL
    cdef StagePlace* place(self, number) except NULL
    cdef void drop_all(self) noexcept
    cdef OperatorView view(self, Stage* stage)
    cdef Rest run(self, uint32_t lane) noexcept nogil
    cdef object next_turn(self, Rest rest)


cdef LaneKinds lanes_of(str kind) except? 0
