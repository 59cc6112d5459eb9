# Stages and lanes of a running graph: see flow.hpp.
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.memory cimport unique_ptr
from libcpp.vector cimport vector

from callboard.scheduling.flow.answering_stage cimport AnsweringStage
from callboard.scheduling.flow.fused_stage cimport FusedStage
from callboard.scheduling.flow.heuristics cimport Chooser
from callboard.scheduling.flow.keyed_stage cimport KeyedStage
from callboard.scheduling.flow.stage cimport Figures, LaneKinds, Stage, Work

cdef extern from "callboard/scheduling/flow/flow.hpp" namespace "callboard" nogil:
    enum RestReason "callboard::Pool::Rest::Reason":
        idle "callboard::Pool::Rest::idle"
        time_over "callboard::Pool::Rest::time_over"
        until "callboard::Pool::Rest::until"

    cdef cppclass Rest "callboard::Pool::Rest":
        RestReason reason
        int64_t time

    cdef cppclass Settings "callboard::Flow::Settings":
        uint32_t window
        int64_t time_slice_ns
        int64_t activation_ns
        uint32_t marker_every
        cbool one_by_one
        cbool tries_lanes

    cdef cppclass Times "callboard::LatencyMarkers::Times":
        int64_t serial
        int64_t arrived
        int64_t begun
        int64_t left

    cdef cppclass LatencyMarkers:
        vector[Times] finished()
        vector[Times] latest(size_t most) except +

    ctypedef void (*SliceNote)(const Stage& stage, int64_t begin, int64_t end, uint64_t rows) noexcept nogil

    cdef cppclass SliceObserver:
        pass

    cdef cppclass Pool:
        const vector[Stage*]& stages()
        void note_slices(SliceNote note)
        SliceObserver* observe(SliceObserver* observer)
        uint32_t add_lane(LaneKinds kinds, void (*wake)(void*) noexcept nogil, void* lane) except +
        void set_active(uint64_t lanes)
        void retire_lanes()
        Rest run(uint32_t lane)
        cbool help(LaneKinds kinds)

    const uint32_t most_members "callboard::Chain::most_members"

    cdef cppclass Chain:
        void add_member(const Work& work) except +
        Work work()
        Figures figures_of(uint32_t member)

    cdef cppclass Flow:
        Flow(Settings settings) except +
        Pool& add_pool(unique_ptr[Chooser] chooser) except +
        Stage& add_shared(Pool& pool, const Work& work, LaneKinds runs_on, uint32_t most_lanes) except +
        Stage& add_ordered(Pool& pool, const Work& work, LaneKinds runs_on, uint32_t inputs) except +
        AnsweringStage& add_answering(Pool& pool, const Work& work, LaneKinds runs_on) except +
        KeyedStage& add_keyed(Pool& pool, const Work& divider, const Work& work, LaneKinds runs_on,
                              uint32_t most_lanes, uint32_t partitions) except +
        FusedStage& add_fused(Pool& pool, LaneKinds runs_on) except +
        Chain& make_chain(uint32_t most_lanes) except +
        void connect(Stage& source, Stage& to, uint32_t input) except +
        void add_entry(Stage& to, uint32_t input) except +
        void finish_graph() except +
        const vector[unique_ptr[Stage]]& stages()
        int64_t admitted()
        cbool has_room()
        void admit(void** batches)
        int64_t done()
        cbool wait_until_done(int64_t rounds, int64_t nanoseconds)
        void drain()
        LatencyMarkers& markers()
