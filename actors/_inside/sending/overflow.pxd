from callboard._inside.sending.dead_lettering cimport FULL, Fate
from callboard._inside.sending.runtime cimport Runtime
from callboard.mailbox.limits cimport Limits
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.forward cimport Context
from callboard.scheduling.handle cimport Handle


cdef class Overflow:
    cdef readonly bint senders_pop  # who finds the mailbox full takes messages out of it
    cdef readonly bint waits        # who finds it full waits, for room or for a time

    cdef Fate give_up(self, Handle to, str obstacle) except? FULL
    cdef Fate make_room(self, Handle to, Runtime runtime, Context* context) except? FULL


cdef str stayed_full(Limits* limits)
cdef Overflow overflow_named(str name)
cdef void release_popping(Handle to, Runtime runtime, Context* context) noexcept
cdef void drop_all(Cell* cell) noexcept


cdef inline bint senders_pop(Cell* cell) noexcept nogil:
    return cell.limits != NULL and cell.limits.senders_pop
