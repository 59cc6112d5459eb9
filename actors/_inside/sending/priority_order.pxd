from libc.stdint cimport uint64_t

from callboard._inside.sending.envelope cimport ActorCell
from callboard._inside.sending.state cimport Intake
from callboard._inside.sending.stored_envelope cimport StoredEnvelope


cdef class Ranked:
    # An envelope in the heap of a PriorityMailbox.
    cdef int rank             # before all keys, in the order of keys, or after them
    cdef object key
    cdef uint64_t arrival
    cdef StoredEnvelope stored

    cdef bint comes_before(self, Ranked other) except -1


cdef int push_ranked(list heap, object key, StoredEnvelope stored, uint64_t arrival) except -1
cdef list in_order_of_arrival(list heap)


cdef class PriorityIntake(Intake):
    cdef object key           # of a message: what is least comes first
    cdef list heap            # Ranked
    cdef uint64_t arrivals
    cdef list fences          # envelopes of fences: they have no key, and wait until nothing else does

    cdef bint find_place(self, StoredEnvelope stored) noexcept
    cdef void pass_fences(self) noexcept
    cdef StoredEnvelope pop(self, ActorCell* cell)
