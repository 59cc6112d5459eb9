# Indexes of the partners of many rows at once, in columns.
from libc.stdint cimport int64_t, uint8_t, uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector

from callboard.streams.programs.joins.join_index cimport JoinIndex
from callboard.streams.programs.joins.kernel.rules cimport JoinMatch, JoinRule, JoinSettings

cdef extern from "callboard/streams/programs/joins/kernel/column_matcher.hpp" namespace "callboard" nogil:
    cdef cppclass ColumnMatcher:
        void match(size_t first, size_t rows, const uint8_t* sides, const void* times, const void* const* values,
                   const uint8_t* alone, vector[JoinMatch]& matches) except +
        void load(size_t rows, const uint8_t* sides, const void* times, const void* const* values,
                  const uint8_t* alone) except +
        uint64_t compared()

    cdef cppclass ColumnMatcherOf[Time](ColumnMatcher):
        ColumnMatcherOf(const JoinSettings[Time]& settings, bool by_buckets) except +

    void add_matches(vector[JoinMatch]& matches, const vector[JoinMatch]& others) except +

# The number of rows that are matched at once.
cdef Py_ssize_t most_at_once


cdef class Known:
    # The facts that the first batches of the streams tell.
    cdef object scale      # of times
    cdef dict lengths      # on that scale
    cdef list layouts      # of each stream, or None
    cdef object schema     # of outputs, or None
    cdef list terms        # of each column that is compared, whether it is of doubles, and the comparison or None

    cdef bint has_whole_times(self)


cdef class OrderedRows:
    # Rows of both streams that are ready, in one order; maybe none.
    cdef Known known
    cdef list batches      # of each stream, its rows, or None
    cdef list own_columns  # and columns that go with these
    cdef object sides      # of each row the stream; None: there are no rows
    cdef object times
    cdef list columns      # what is compared of each row; last, where there are bands, whether it has no partner
    cdef bint is_final
    cdef object bound      # the time which all rows that come have come to; None: not known
    cdef object progress   # where the output says what has left windows; None: it need not
    # For a function that answers masks.
    cdef list asked, shown     # of each stream, all rows of its window as they are inside, and as functions see them
    cdef object numbers        # of each row, its place in those of its stream
    cdef object begins, ends   # of each row, the places of the rows that it is compared with
    cdef list firsts           # the number of the first row there, of each stream

    cdef Py_ssize_t count(self)


cdef class Matches:
    cdef vector[JoinMatch] found


cdef class ColumnIndex(JoinIndex):
    cdef JoinRule rule
    cdef object most
    cdef bint by_buckets
    cdef size_t lane, lanes
    cdef ColumnMatcher* matcher  # made with the first chunk

    cdef int match(self, OrderedRows chunk, Py_ssize_t begin, Py_ssize_t rows, Matches into) except -1
    # `passed`: how many rows of each stream came before all that it is given.
    cdef int make(self, Known known, tuple passed=*) except -1
    # Rows of a stream that were in its window when another was saved; then make() was called.
    cdef int load(self, Known known, uint8_t side, object times, list columns) except -1


# Which rows are in a window: the latest `most`, or else those within a time.
cdef JoinRule rule_of(object most, bint three_step) noexcept
# How long rows of either stream are in it.
cdef tuple lengths_of(Known known, object most)
# The rows of a batch that are partners of a row, as a function answers.
cdef object places_of(object mask, object row, object others)
