"""The context variables of the message in work, for those who put spans around handlers."""

from callboard._inside.sending.envelope cimport ActorCell
from callboard._inside.sending.letter cimport variables_of
from callboard.scheduling.context cimport current_context

cdef extern from "callboard/_inside/sending/actor_cell.hpp":
    pass


def variables_in_work():
    """Return a copy of its sender's context variables; None if it had none, or if no message is in work here."""
    cdef ActorCell* cell = <ActorCell*>current_context().current
    if cell == NULL or cell.in_work == NULL:
        return None
    return variables_of(cell.in_work)
