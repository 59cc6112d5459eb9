# A finder of a row's partners, by numbers.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector

from callboard.streams.programs.joins.finder cimport Finder
from callboard.streams.programs.joins.kept cimport Kept
from callboard.streams.programs.joins.kernel.rules cimport JoinMatch, JoinSettings

cdef extern from "callboard/streams/programs/joins/kernel/number_join.hpp" namespace "callboard" nogil:
    cdef cppclass NumberJoin:
        NumberJoin(const JoinSettings[int64_t]& settings) except +
        NumberJoin(const JoinSettings[double]& settings) except +
        void add_row(uint8_t side, uint64_t number, bool is_alone) except +
        void add_time(int64_t time) except +
        void add_time(double time) except +
        void add_value(uint32_t term, int64_t value) except +
        void add_value(uint32_t term, double value) except +
        void match(vector[JoinMatch]& matches) except +
        uint64_t compared()


cdef class NumberFinder(Finder):
    cdef list comparisons
    cdef bint once
    cdef dict of_number         # the rows in windows
    cdef NumberJoin* join       # made by the first row that has values, which says of what types all are
    cdef bint whole_times
    cdef vector[bint] whole     # of each band, whether its values are integers
    cdef vector[JoinMatch] matches

    cdef int skip(self, Kept kept, uint8_t side, uint64_t rows) except -1
    cdef bint add(self, Kept kept) except -1
    cdef int begin(self, Kept kept) except -1
