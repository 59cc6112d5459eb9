"""Kinds of mailboxes: how messages come from the queue to the handler where that is not their order of arrival."""


cdef class Intake:
    """Takes messages out of one actor's queue, keeps them, and hands them out in an order of its own.

    The readiness owner calls it, with the interpreter. A message counts in the cell's `limits` until it is
    handed out.
    """

    cdef TakeResult take(self, ActorCell* cell, Context* context, Envelope* envelope) noexcept:
        """Hand out the message that comes first, if there is one."""
        return NOTHING

    cdef bint is_empty(self) noexcept:
        """Tell whether nothing is kept here."""
        return True

    cdef list take_all(self, ActorCell* cell):
        """Return all letters that are kept, in the order of their arrival, at the actor's end."""
        return []
