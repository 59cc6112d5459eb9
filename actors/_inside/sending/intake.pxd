from callboard._inside.sending.envelope cimport ActorCell, Envelope
from callboard._inside.sending.letter cimport Letter
from callboard.scheduling.forward cimport Context


cdef enum TakeResult:
    NOTHING
    MESSAGE
    UNFIT      # a message had no place in the order: see Intake.unfit


cdef class Intake:
    # The part of a kind of mailbox beyond its queue: see intake.pyx.
    cdef bint knows_timers    # by Carried.is_of_timer
    cdef Letter unfit         # the last message that had no place
    cdef object misfit        # and the exception that says why

    cdef TakeResult take(self, ActorCell* cell, Context* context, Envelope* envelope) noexcept
    cdef bint is_empty(self) noexcept
    cdef list take_all(self, ActorCell* cell)
