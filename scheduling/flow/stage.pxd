# Stages and their work: see stage.hpp, keyed_division.hpp.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool as cbool
from libcpp.vector cimport vector

cdef extern from "callboard/core/atomics.hpp" namespace "callboard" nogil:
    cdef cppclass AtomicCount "callboard::Atomic<std::int64_t>":
        int64_t load()
        void store(int64_t value)

cdef extern from "callboard/scheduling/flow/stage.hpp" namespace "callboard" nogil:
    ctypedef uint8_t LaneKinds
    const LaneKinds native_lanes
    const LaneKinds python_lanes
    const LaneKinds all_lanes

    cdef cppclass RowTotals:
        uint64_t taken
        uint64_t given

    cdef cppclass Figures:
        cbool are_there()
        uint64_t taken()
        uint64_t given()
        double selectivity()
        double cost_ns()
        int64_t busy_ns()

    cdef cppclass SubBatch "callboard::Division::SubBatch":
        uint32_t partition
        vector[uint32_t] rows
        vector[uint64_t] ends
        size_t gathered

    cdef cppclass Range "callboard::Division::Range":
        uint64_t begin
        uint64_t end

    cdef cppclass Division:
        void* batch
        int64_t serial
        void divide_among(uint32_t partitions, size_t rows)
        uint32_t add(uint64_t key)
        uint32_t add_to(uint32_t partition)
        void add_to_all()
        void add_to_none()
        void concern_all()
        uint32_t count()
        SubBatch& sub_batch(uint32_t number)
        size_t rows()
        uint32_t owner(size_t row)
        @staticmethod
        Range next(SubBatch& sub_batch)
        @staticmethod
        uint32_t partition_of(uint64_t key, uint32_t partitions)

    cdef cppclass Work:
        void* self
        void* (*process)(void*, int64_t, void**, RowTotals&) noexcept nogil
        void* (*pick)(void*, void*, uint32_t) noexcept nogil
        void (*discard)(void*, void*) noexcept nogil
        void (*process_sub_batch)(void*, Division&, uint32_t, RowTotals&) noexcept nogil
        void* (*gather)(void*, Division&) noexcept nogil
        cbool (*next)(void*, void**, RowTotals&) noexcept nogil

    cdef cppclass Stage:
        uint32_t position
        LaneKinds runs_on
        uint32_t most_lanes
        cbool gives_parts
        uint64_t number
        int64_t waiting()
        cbool has_room_for_lane()
        uint32_t lanes()
        double cost_ns()
        double selectivity()
        double queued()
        uint64_t taken()
        uint64_t given()
        int64_t busy_ns()
        void rest_until(int64_t time)
        int64_t not_before()
        cbool may_hand_on_part(int64_t serial)
        void hand_on_part(int64_t serial, void* output)
        void note(const RowTotals& rows_of, int64_t rounds, int64_t spent_ns, cbool alone)
        void note_counted(const RowTotals& here, const RowTotals& rows_of, int64_t spent_ns)
