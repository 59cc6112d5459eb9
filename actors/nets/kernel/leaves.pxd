"""Boxes, for nodes in other modules that pass on their outputs."""

from libc.stdint cimport int64_t

from callboard.nets.kernel.executor cimport Entity, NetExecutor, NetNode
from callboard.nets.kernel.record cimport Assembler, MovingRecord


cdef class SpecializedBox:
    cdef list slots
    cdef Assembler assembler
    cdef tuple keys


cdef int take_output(MovingRecord into, SpecializedBox special, object output, tuple inherited) except -1


cdef class BoxNode(NetNode):
    cdef public object function
    cdef object factory  # makes a function for each replica
    cdef readonly bint generates
    cdef bint collects  # outputs, until all of a record's are there

    cdef void end(self, MovingRecord record, int64_t began, NetExecutor executor) noexcept
    cdef int let_next_in(self, Entity at, NetExecutor executor) except -1
