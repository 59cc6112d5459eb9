# A running graph, between the programs (Python) and the stages (C++).
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from cpython.object cimport PyObject
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from callboard.core.node cimport memory_order
from callboard.scheduling.heuristics cimport HeuristicKind
from callboard.core.values cimport Output, Value, Values
from callboard.streams._program cimport Batch, Program
from callboard.streams.native cimport NativeProgram

cdef extern from "callboard/scheduling/flow.hpp" namespace "callboard" nogil:
    enum StageKind "callboard::StageKind":
        parallel "callboard::StageKind::parallel"
        serial "callboard::StageKind::serial"
        partitioned "callboard::StageKind::partitioned"

    enum Reordering "callboard::Reordering":
        non_blocking "callboard::Reordering::non_blocking"
        locked "callboard::Reordering::locked"

    enum Partitioning "callboard::Partitioning":
        hybrid "callboard::Partitioning::hybrid"
        by_partition "callboard::Partitioning::partitioned"
        shared "callboard::Partitioning::shared"

    ctypedef uint8_t LaneKinds
    const LaneKinds native_lanes
    const LaneKinds python_lanes
    const LaneKinds all_lanes

    cdef cppclass Tally:
        uint64_t taken
        uint64_t given

    cdef cppclass Operator:
        void* self
        void* (*process)(void*, int64_t, void**, Tally&) noexcept nogil
        void* (*pick)(void*, void*, uint32_t) noexcept nogil
        void (*discard)(void*, void*) noexcept nogil
        uint32_t (*split)(void*, void*, uint32_t*) noexcept nogil
        cbool (*part)(void*, uint32_t, void*, Tally&) noexcept nogil
        void* (*gather)(void*, int64_t, void*) noexcept nogil

    cdef cppclass Edge "callboard::Stage::Edge":
        pass

    cdef cppclass Stage:
        uint32_t position
        uint32_t most_lanes
        uint32_t lanes()
        int64_t delivered()
        double cost_ns()
        double selectivity()
        double queued()
        uint64_t taken()
        uint64_t given()
        int64_t busy_ns()
        void rest_until(int64_t time)

    enum RestReason "callboard::Flow::Rest::Reason":
        idle "callboard::Flow::Rest::idle"
        turn_over "callboard::Flow::Rest::turn_over"
        until "callboard::Flow::Rest::until"

    cdef cppclass Rest "callboard::Flow::Rest":
        RestReason reason
        int64_t time

    cdef cppclass Settings "callboard::Flow::Settings":
        uint32_t window
        int64_t slice_ns
        int64_t turn_ns
        uint32_t marker_every
        cbool one_by_one
        Reordering reordering
        Partitioning partitioning

    cdef cppclass Chooser "callboard::Heuristic":
        Chooser(HeuristicKind kind, double capacity, int64_t window_ns, int64_t slice_ns,
                uint32_t (*choose)(void*, const uint32_t*, uint32_t) noexcept nogil, void* self)

    cdef cppclass Times "callboard::Markers::Times":
        int64_t serial
        int64_t arrived
        int64_t begun
        int64_t left

    cdef cppclass Markers:
        vector[Times] finished()

    cdef cppclass FlowOf "callboard::Flow":
        FlowOf(Settings settings, Chooser heuristic)
        Stage& add(StageKind kind, LaneKinds runs_on, uint32_t inputs, uint32_t partitions,
                   uint32_t most_lanes, Operator what)
        void connect(Stage& source, Stage& to, uint32_t input)
        void finish_graph(const vector[Edge]& entries)
        uint32_t add_lane(LaneKinds kinds, void (*wake)(void*) noexcept nogil, void* lane)
        int64_t admitted()
        cbool has_room()
        void admit(void** batches)
        int64_t done()
        cbool wait_until_done(int64_t rounds, int64_t nanoseconds)
        Rest run(uint32_t lane)
        cbool step(LaneKinds kinds, int64_t time)
        int64_t now()
        Markers& markers()

cdef extern from "callboard/core/atomics.hpp" namespace "callboard" nogil:
    cdef cppclass AtomicCount "callboard::Atomic<std::int64_t>":
        int64_t load()
        void store(int64_t value)
        int64_t fetch_sub(int64_t value, memory_order order)

cdef extern from "callboard/scheduling/native_stage.hpp" namespace "callboard" nogil:
    cdef cppclass NativeStage:
        void (*process)(void*, const Value*, uint64_t, Output*) noexcept nogil
        void (*finish)(void*, Output*) noexcept nogil
        uint64_t (*key_of)(void*, const Value*) noexcept nogil
        vector[void*] objects
        void* owner
        const AtomicCount* stopped_at
        cbool is_sink
        void* (*make_error)(void*, const char*) noexcept nogil
        void (*retain_error)(void*) noexcept nogil
        void (*drop_error)(void*) noexcept nogil
        void (*report)(void*, int64_t, void*) noexcept nogil
        uint32_t edges
        void let_go(Values* lot)
        @staticmethod
        Operator whole(NativeStage* stage)
        @staticmethod
        Operator divider(NativeStage* stage)
        @staticmethod
        Operator parts(NativeStage* stage)

cdef extern from *:
    """
    #include "callboard/scheduling/flow.hpp"
    static inline callboard::Stage::Edge edge_to(callboard::Stage* to, std::uint32_t input) {
        return {to, input};
    }
    """
    Edge edge_to(Stage* to, uint32_t input) nogil


cdef class Flow:
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
    cdef bint keeps_interpreter       # while a lane works on Python stages
    cdef readonly uint32_t window
    cdef readonly object failure      # (serial, error) of the earliest round that failed, or None
    cdef AtomicCount stopped_at       # rounds after this one are dropped

    cdef Stage* stage_of(self, Work work, Program program, LaneKinds kinds, StageKind kind, int inputs,
                         int partitions, int most_lanes)
    cdef int add_native(self, NativeProgram program, LaneKinds kinds, int partitions, int most_lanes,
                        Stage** inlet, Stage** outlet) except -1
    cdef int give_work(self, Work work, Program program, int inputs) except -1
    cdef int fail(self, int64_t serial, object error) except -1
    cdef void keep(self, object what) noexcept
    cdef list names(self)
    cdef OperatorView view(self, int i)
    cdef object next_turn(self, Rest rest)


cdef class Work:
    cdef void* owner         # the Flow; borrowed, since it owns this
    cdef Program program
    cdef list ports_of       # for each edge, the port it comes from, in order
    cdef list passed         # for each port, how many rows left by it
    cdef uint32_t edges
    cdef int inputs
    cdef vector[bint] from_native   # for each input, whether it brings lots of native values
    cdef vector[bint] to_native     # for each edge, whether it takes such
    cdef Stage* stage        # of a throttled program, which rests after its rows
    cdef double ns_per_row

    cdef int throttle(self, Stage* stage) except -1
    cdef void* process(self, int64_t serial, void** inputs, Tally& tally) noexcept
    cdef bint is_dropped(self, int64_t serial) noexcept
    cdef Batch take(self, int which, void** inputs)
    cdef list fresh(self, Batch batch)
    cdef object named(self, object raised)
    cdef void* finish(self, int64_t serial, list into, bint final, object error, Tally& tally) noexcept
    cdef void* pick(self, list into, uint32_t edge) noexcept


cdef class NativeWork(Work):
    cdef NativeStage native


cdef class OperatorView:
    cdef Flow flow
    cdef Stage* stage
    cdef readonly str name
