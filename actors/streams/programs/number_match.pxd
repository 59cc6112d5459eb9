# Which rows of a join are partners, where that is a question of numbers.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

cdef extern from "callboard/streams/joining/indexed_join.hpp" namespace "callboard" nogil:
    cdef enum class NumberType(uint8_t):
        int64
        float64

    cdef enum class JoinRule(uint8_t):
        strict

    cdef cppclass JoinTerm:
        @staticmethod
        JoinTerm band(NumberType type, double distance)
        @staticmethod
        JoinTerm whole_band(NumberType type, uint64_t distance)

    cdef cppclass JoinPredicate:
        void add(const JoinTerm& term)

    cdef cppclass JoinSettings[Time]:
        JoinPredicate predicate
        JoinRule rule
        Time within
        uint64_t seed

    cdef cppclass JoinBatch[Time]:
        size_t rows
        const uint8_t* sides
        const Time* times
        const uint64_t* numbers
        const void* values[4]

    cdef cppclass JoinMatch:
        uint32_t row
        uint64_t partner

    cdef cppclass IndexedJoin[Time]:
        IndexedJoin(const JoinSettings[Time]& settings) except +
        void join(const JoinBatch[Time]& batch, vector[JoinMatch]& matches) except +


cdef class NumberMatch:
    cdef object within
    cdef list distances
    cdef bint begun             # the first row has said of what types all are
    cdef bint whole_times
    cdef bint whole[4]          # of each band, whether its values are integers
    cdef IndexedJoin[int64_t]* by_whole_time
    cdef IndexedJoin[double]* by_time
    # The rows of the next batch.
    cdef vector[uint8_t] sides
    cdef vector[uint64_t] numbers
    cdef vector[int64_t] times_whole
    cdef vector[double] times
    cdef vector[vector[int64_t]] values_whole  # of each band, one of the two
    cdef vector[vector[double]] values
    cdef vector[JoinMatch] matches

    cdef bint add(self, uint8_t side, object time, uint64_t number, tuple values) except -1
    cdef int match(self) except -1
    cdef bint begin(self, object time, tuple values) except -1
    cdef JoinPredicate predicate(self) except *
    cdef const void* column(self, Py_ssize_t i) noexcept
