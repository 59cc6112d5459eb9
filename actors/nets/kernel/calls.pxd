"""Calls of boxes that run elsewhere."""

from callboard.nets.kernel.carrier cimport Entity, EntityState
from callboard.nets.kernel.record cimport MovingRecord


cdef class BoxCall:
    cdef Entity entity
    cdef readonly MovingRecord record
    cdef readonly tuple arguments
    cdef readonly object box
    cdef bint is_done
    cdef list outputs  # that wait for earlier calls
    cdef public Py_ssize_t tries
    cdef public bint is_over  # nothing more comes of it
    cdef bint has_given


cdef class CalledBoxState(EntityState):
    cdef Py_ssize_t running  # calls
    cdef list waiting  # the records for which no call has begun
    cdef object function  # the replica's own, if each has one
    cdef list in_order  # the calls whose outputs are to be in order, the first one first
