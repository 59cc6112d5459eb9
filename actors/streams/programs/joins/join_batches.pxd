# A join of two streams of Arrow batches.
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector

from callboard.streams.programs.columns.batches_in_time cimport BatchesInTime
from callboard.streams.programs.joins.kernel.rules cimport JoinLengths, JoinMatch, JoinPredicate, JoinRule
from callboard.streams.programs.joins.chunk_index cimport ColumnIndex, Known, OrderedRows, Matches

cdef extern from "callboard/streams/programs/joins/kernel/column_matcher.hpp" namespace "callboard" nogil:
    cdef enum class VectorPath(uint8_t):
        pass

    VectorPath best_path()
    bool prefers_index(const JoinPredicate& predicate, VectorPath path, double window_rows)

cdef extern from "callboard/streams/programs/joins/kernel/column_join.hpp" namespace "callboard" nogil:
    cdef enum class JoinKind(uint8_t):
        inner

    cdef cppclass JoinedRows:
        vector[int64_t] of[2]
        size_t size()
        void clear()

    cdef cppclass ColumnJoin:
        size_t take_many(size_t first, size_t rows, const uint8_t* sides, const void* times, const JoinMatch* matches,
                         size_t count) except +
        void arrive(const void* time) except +
        void take(uint8_t side, const void* time, const int64_t* partners, size_t count) except +
        void let_all_go() except +
        void save(uint32_t side, void* times, uint8_t* partners)
        void begin_at(uint32_t side, uint64_t number)
        void load(uint32_t side, const void* times, const uint8_t* partners, size_t rows) except +
        uint64_t begin(uint32_t side)
        uint64_t end(uint32_t side)
        bool has_oldest(void* time)
        void earliest(void* time)
        JoinedRows& outputs()

    cdef cppclass ColumnJoinOf[Time](ColumnJoin):
        ColumnJoinOf(JoinKind kind, JoinRule rule, JoinLengths[Time] within, uint64_t most) except +


cdef class JoinBatches(BatchesInTime):
    cdef object compared
    cdef tuple masks
    cdef str suffix
    cdef bint is_left_alone  # outputs have the columns of the left stream
    cdef tuple lacking       # of each stream, whether outputs may lack its columns
    cdef JoinKind kind
    cdef JoinRule rule
    cdef object most         # rows in a window, or None
    cdef ColumnIndex index   # None: others find partners, or a function is asked
    cdef ColumnJoin* join    # made when the first rows are ready
    cdef bint has_whole_times
    cdef list windows
    cdef object schema       # of outputs, once both streams have had a batch
    cdef list halves         # outputs that wait for that: (side, columns, earliest time)

    cdef int forget(self, list columns) except -1
    cdef OrderedRows chunk_of(self, list ready, bint final)
    cdef Known known(self)
    cdef int make(self, Known known, JoinKind kind) except -1
    cdef JoinKind kind_alone(self) noexcept
    cdef int do(self, OrderedRows chunk, object found, object lineage, list into) except -1
    cdef int match(self, OrderedRows chunk, Matches found) except -1
    cdef int ask(self, OrderedRows chunk, object lineage, list into) except -1
    cdef object partners(self, OrderedRows chunk, Py_ssize_t at)
    cdef int failed_row(self, OrderedRows chunk, Py_ssize_t at, object error, object lineage, list into) except -1
    cdef int let_go(self, OrderedRows chunk) except -1
    cdef int assemble(self) except -1
    cdef int complete(self) except -1
    cdef object time_at(self, const char* place)
