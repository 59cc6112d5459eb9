# A join of two streams of Arrow batches.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector

from callboard.streams.programs.columns.batches_in_time cimport BatchesInTime
from callboard.streams.programs.joins.kernel.rules cimport JoinPredicate, JoinRule, JoinSettings

cdef extern from "callboard/streams/programs/joins/kernel/column_join.hpp" namespace "callboard" nogil:
    cdef enum class JoinKind(uint8_t):
        pass

    cdef enum class VectorPath(uint8_t):
        pass

    cdef cppclass JoinedRows:
        vector[int64_t] of[2]
        size_t size()
        void clear()

    cdef cppclass ColumnJoin:
        void join(size_t rows, const uint8_t* sides, const void* times, const void* const* values,
                  const uint8_t* alone) except +
        void arrive(const void* time) except +
        void take(uint8_t side, const void* time, const int64_t* partners, size_t count) except +
        void let_all_go() except +
        uint64_t begin(uint32_t side)
        uint64_t end(uint32_t side)
        bool has_oldest(void* time)
        void earliest(void* time)
        JoinedRows& outputs()

    cdef cppclass ColumnJoinOf[Time](ColumnJoin):
        ColumnJoinOf(JoinKind kind, const JoinSettings[Time]& settings, uint64_t most, bool by_cells) except +

    VectorPath best_path()
    bool prefers_index(const JoinPredicate& predicate, VectorPath path, double window_rows)


cdef class JoinBatches(BatchesInTime):
    cdef object compared
    cdef tuple masks
    cdef str suffix
    cdef bint by_cells
    cdef bint is_left_alone  # outputs have the columns of the left stream
    cdef tuple lacking       # of each stream, whether outputs may lack its columns
    cdef JoinKind kind
    cdef JoinRule rule
    cdef uint64_t most
    cdef ColumnJoin* join    # made when the first rows are ready
    cdef bint whole_times    # the times are integers
    cdef list windows
    cdef object schema       # of outputs, once both streams have had a batch
    cdef list halves         # outputs that wait for that: (side, columns, earliest time)

    cdef int make(self) except -1
    cdef int match(self, object sides, object times, list columns) except -1
    cdef int ask(self, object sides, object times, object serials, object origin, list into) except -1
    cdef object partners(self, Py_ssize_t side, object row)
    cdef int let_go(self, bint final) except -1
    cdef int assemble(self) except -1
    cdef int complete(self) except -1
    cdef object time_at(self, const char* place)
