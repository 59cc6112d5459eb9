from libc.stdint cimport uint64_t

from callboard._inside.sending.envelope cimport ActorCell
from callboard._inside.sending.intake cimport Intake
from callboard._inside.sending.letter cimport Letter


cdef class PriorityIntake(Intake):
    cdef object key           # of a message: what is least comes first
    cdef list heap            # Ranked
    cdef uint64_t arrivals
    cdef list fences          # Letters of fences: they have no key, and wait until nothing else does

    cdef bint find_place(self, Letter letter) noexcept
    cdef void pass_fences(self) noexcept
    cdef Letter pop(self, ActorCell* cell)
