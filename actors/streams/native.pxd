# The declarations that packages cimport to write native operators (NativeOperator, Output and Value) and predicates
# of joins (NativePredicate). See `docs/streams-native.md`.
from libc.stdint cimport uint64_t

from callboard.scheduling.flow.native_work cimport NativeWork
from callboard.scheduling.flow.values cimport Output, Value
from callboard.streams.programs.joins.native_finder cimport NativePredicate
from callboard.streams.programs.program cimport Program


cdef class NativeOperator:
    # Subclass this and override `process`. Without the interpreter, on any worker.

    # `count` values, at least one. The memory that they point to is borrowed.
    cdef void process(self, const Value* values, uint64_t count, Output* out) noexcept nogil
    # The stream's end: put out what the operator still holds.
    cdef void finish(self, Output* out) noexcept nogil
    # The value's key, for a keyed operator. Several workers call it at a time, on one object.
    cdef uint64_t key_of(self, const Value* value) noexcept nogil


cdef class NativeProgram(Program):
    cdef list objects       # one, or one for each partition
    cdef NativeWork native  # the work of its stages
