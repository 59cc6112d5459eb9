# Who finds partners of a row where that is a question of numbers.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp.vector cimport vector

from callboard.streams.programs.finder cimport Finder
from callboard.streams.programs.kept cimport Kept

cdef extern from "callboard/streams/joining/number_join.hpp" namespace "callboard" nogil:
    cdef enum class NumberType(uint8_t):
        int64
        float64

    cdef enum class JoinRule(uint8_t):
        three_step
        strict
        last_rows

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
        uint64_t lanes
        uint64_t lane
        uint64_t seed

    cdef cppclass JoinMatch:
        uint32_t row
        uint64_t partner

    cdef cppclass NumberJoin:
        NumberJoin(const JoinSettings[int64_t]& settings) except +
        NumberJoin(const JoinSettings[double]& settings) except +
        void add_row(uint8_t side, uint64_t number) except +
        void add_time(int64_t time) except +
        void add_time(double time) except +
        void add_value(uint32_t term, int64_t value) except +
        void add_value(uint32_t term, double value) except +
        void match(vector[JoinMatch]& matches) except +
        uint64_t compared()

    const Py_ssize_t MOST_TERMS "callboard::JoinPredicate::most"


cdef class NumberFinder(Finder):
    cdef list distances
    cdef bint once
    cdef dict of_number         # the rows in windows
    cdef NumberJoin* join       # made by the first row, which says of what types all are
    cdef bint whole_times
    cdef vector[bint] whole     # of each band, whether its values are integers
    cdef vector[JoinMatch] matches

    cdef bint add(self, Kept kept) except -1
    cdef int begin(self, Kept kept) except -1
