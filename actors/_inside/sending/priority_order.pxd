from libc.stdint cimport uint64_t

from callboard._inside.sending.envelope cimport ActorCell
from callboard._inside.sending.letter cimport Letter
from callboard._inside.sending.state cimport Intake


cdef class Ranked:
    # A letter in the heap of a PriorityMailbox.
    cdef int rank             # before all keys, in the order of keys, or after them
    cdef object key
    cdef uint64_t arrival
    cdef Letter letter

    cdef bint comes_before(self, Ranked other) except -1


cdef int push_ranked(list heap, object key, Letter letter, uint64_t arrival) except -1
cdef list in_order_of_arrival(list heap)


cdef class PriorityIntake(Intake):
    cdef object key           # of a message: what is least comes first
    cdef list heap            # Ranked
    cdef uint64_t arrivals
    cdef list fences          # Letters of fences: they have no key, and wait until nothing else does

    cdef bint find_place(self, Letter letter) noexcept
    cdef void pass_fences(self) noexcept
    cdef Letter pop(self, ActorCell* cell)
