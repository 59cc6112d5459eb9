# Stages and lanes of running graphs: see flow.hpp, stage.hpp, native_stage.hpp.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

from callboard.core.node cimport memory_order
from callboard.scheduling.flow.values cimport Output, Value, Values
from callboard.scheduling.flow.heuristics cimport HeuristicKind

cdef extern from "callboard/scheduling/flow/flow.hpp" namespace "callboard" nogil:
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
        cbool (*part)(void*, uint32_t, int64_t, void*, Tally&) noexcept nogil
        void* (*gather)(void*, int64_t, void*) noexcept nogil

    cdef cppclass Edge "callboard::Stage::Edge":
        pass

    cdef cppclass Stage:
        uint32_t position
        uint32_t most_lanes
        cbool divides
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
        cbool help(LaneKinds kinds, int64_t time)
        cbool is_at_work_here()
        int64_t now()
        Markers& markers()

cdef extern from "callboard/core/atomics.hpp" namespace "callboard" nogil:
    cdef cppclass AtomicCount "callboard::Atomic<std::int64_t>":
        int64_t load()
        void store(int64_t value)
        int64_t fetch_sub(int64_t value, memory_order order)

cdef extern from "callboard/scheduling/flow/native_stage.hpp" namespace "callboard" nogil:
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
    #include "callboard/scheduling/flow/flow.hpp"
    static inline callboard::Stage::Edge edge_to(callboard::Stage* to, std::uint32_t input) {
        return {to, input};
    }
    """
    Edge edge_to(Stage* to, uint32_t input) nogil
