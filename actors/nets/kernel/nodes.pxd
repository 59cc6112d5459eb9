"""The nodes of which nets are made."""

from callboard.nets.kernel.carrier cimport EntityState
from callboard.nets.kernel.record cimport Assembler, MovingRecord, Ticket


cdef bint is_true(object test, tuple values) except -1
cdef int take_output(MovingRecord into, BoxPlan plan, object output, tuple inherited) except -1


cdef class BoxPlan:
    cdef list slots
    cdef Assembler assembler
    cdef tuple keys


cdef class TicketQueue(EntityState):
    cdef Ticket first
    cdef Ticket last
