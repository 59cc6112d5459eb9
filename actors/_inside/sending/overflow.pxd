from callboard._inside.sending.actor_cell cimport closed_cell, forked_cell, task_cell
from callboard._inside.sending.runtime cimport Runtime
from callboard._inside.sending.stored_envelope cimport ADMITTED, FORKED, FULL, MISSENT, STOPPED, Fate, StoredEnvelope
from callboard.mailbox.limits cimport Limits
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.forward cimport Context
from callboard.scheduling.handle cimport Handle


cdef Fate admit(Handle to, Runtime runtime, Fate found, Context* context) except? FULL
cdef bint admit_or_dead_letter(
    Handle to, Runtime runtime, Fate found, StoredEnvelope stored, Context* context
) except -1


cdef inline Fate look_at(Cell* cell) noexcept nogil:
    """Tell what becomes of a message that takes no room."""
    if cell.has(closed_cell | forked_cell | task_cell):
        return FORKED if cell.has(forked_cell) else MISSENT if cell.has(task_cell) else STOPPED
    return ADMITTED


cdef inline Fate look_in(Cell* cell, bint past_capacity) noexcept nogil:
    """Take room for a message if there is some: admission as far as it needs neither a wait nor the
    interpreter. `past_capacity`: there always is."""
    cdef Fate found = look_at(cell)
    if found == ADMITTED and cell.limits != NULL:
        if past_capacity:
            cell.limits.exceed(1)
        elif not cell.limits.reserve(1):
            return FULL
    return found


cdef class Overflow:
    cdef readonly bint senders_pop  # a sender that finds the mailbox full takes messages out of it
    cdef readonly bint waits        # a sender that finds it full waits, for room or for a time

    cdef Fate give_up(self, Handle to, str obstacle) except? FULL
    cdef Fate make_room(self, Handle to, Runtime runtime, Context* context) except? FULL


cdef str stayed_full(Limits* limits)
cdef Overflow overflow_named(str name)
cdef void release_popping(Handle to, Runtime runtime, Context* context) noexcept
cdef void drop_all(Cell* cell) noexcept


cdef inline bint senders_pop(Cell* cell) noexcept nogil:
    return cell.limits != NULL and cell.limits.senders_pop
