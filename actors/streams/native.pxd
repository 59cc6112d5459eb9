# The declarations that packages cimport to write native operators (NativeOperator, Output and Value) and predicates
# of joins (NativePredicate). See `docs/streams-native.md`.
from libc.stdint cimport uint8_t, uint64_t
from libcpp.vector cimport vector

from callboard.scheduling.flow.native_work cimport NativeWork
from callboard.scheduling.flow.values cimport Output, Value
from callboard.streams.programs.joins.join_index cimport RowIndex
from callboard.streams.programs.joins.kernel.rules cimport JoinMatch
from callboard.streams.programs.program cimport Program


cdef extern from "callboard/streams/programs/joins/kernel/value_join.hpp" namespace "callboard" nogil:
    cdef cppclass ValueJoin:
        void add(uint8_t side, uint64_t number) except +
        void expire(uint8_t side)
        void compare(const Value& value)
        void store()
        void refuse()
        size_t due()
        size_t rows()
        bint begin(size_t row)
        uint8_t side(size_t row)
        const Value* value(size_t row)
        const Value* others(size_t row)
        size_t count(size_t row)
        void found(size_t row, size_t place) except +
        void end(size_t row) except +
        vector[JoinMatch] matches
        uint64_t compared()


cdef class NativeOperator:
    # Subclass this and override `process`. Without the interpreter, on any worker.

    # `count` values, at least one. The memory that they point to is borrowed.
    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil
    # The stream's end: output what the operator still holds.
    cdef void finish(self, Output* out) noexcept nogil
    # The value's key, for a keyed operator. Several workers call it at a time, on one object.
    cdef uint64_t key_of(self, const Value* value) noexcept nogil


cdef class NativePredicate:
    # Subclass this and override `matches`. Without the interpreter, in several threads at once.

    # Whether a row of the left stream and one of the right are partners. The memory that values point to is borrowed.
    cdef bint matches(self, const Value* left, const Value* right) noexcept nogil


cdef class NativeProgram(Program):
    cdef list objects       # one, or one for each partition
    cdef NativeWork native  # the work of its stages


cdef class NativeIndex(RowIndex):
    cdef NativePredicate predicate
    cdef bint once
    cdef ValueJoin join
    cdef dict of_number  # rows of windows
    cdef list gone       # numbers of those that have left since the batch began

    cdef int compare(self, object row) except -1
    cdef int match(self) except -1 nogil
