"""Boxes, for nodes in other modules that pass on their outputs."""

from callboard.nets.kernel.record cimport Assembler, MovingRecord


cdef class SpecializedBox:
    cdef list slots
    cdef Assembler assembler
    cdef tuple keys


cdef int take_output(MovingRecord into, SpecializedBox special, object output, tuple inherited) except -1
