# The rules of a join of numbers: its predicate, and which rows it compares.
from libc.stdint cimport uint8_t, uint32_t, uint64_t

cdef extern from "callboard/streams/programs/joins/kernel/rules.hpp" namespace "callboard" nogil:
    cdef enum class NumberType(uint8_t):
        int64
        float64

    cdef enum class JoinRule(uint8_t):
        three_step
        strict
        last_rows

    cdef cppclass JoinTerm:
        @staticmethod
        JoinTerm equal(NumberType type)
        @staticmethod
        JoinTerm band(NumberType type, double distance)
        @staticmethod
        JoinTerm whole_band(NumberType type, uint64_t distance)

    cdef cppclass JoinPredicate:
        void add(const JoinTerm& term)

    cdef cppclass JoinLengths[Time]:
        JoinLengths()
        JoinLengths(Time left, Time right)

    cdef cppclass JoinLane:
        JoinPredicate predicate
        JoinRule rule
        uint64_t lanes
        uint64_t lane
        uint64_t passed[2]
        uint64_t seed

    cdef cppclass JoinSettings[Time]:
        JoinSettings(const JoinLane& lane, Time left, Time right) except +

    cdef cppclass JoinMatch:
        uint32_t row
        uint64_t partner

    bint is_stored_by_lane(uint64_t side, uint64_t turn, uint64_t lane, uint64_t lanes)
    const uint32_t most_terms "callboard::JoinPredicate::most"
