from libc.stdint cimport uint32_t

from callboard._inside.answers.future cimport Future
from callboard._inside.sending.actor_cell cimport ActorCell, note_taken
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.overflow cimport release_popping, senders_pop
from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.state cimport MESSAGE, NOTHING, UNFIT, TakeResult
from callboard._inside.sending.stored_envelope cimport fetch, is_fence
from callboard.core.memory.node cimport Node
from callboard.scheduling.context cimport Context


# The messages that wait for an actor, wherever they are: the one place by which messages come to it, or become dead
# letters.


cdef TakeResult take_first(ActorRef ref, ActorCell* cell, Context* context, Envelope* envelope) noexcept
cdef void skip(ActorRef ref, Future asked) noexcept
cdef bint nothing_beside(ActorRef ref) noexcept
cdef void dead_letter_beside(ActorRef ref) noexcept
cdef bint dead_letter_queued(ActorRef ref, Context* context, uint32_t most) noexcept


cdef inline bint take_oldest(ActorCell* cell, Context* context, Envelope* envelope) noexcept:
    """Take the queue's oldest message."""
    cdef Node* spent = NULL
    cdef Node* node = cell.head.pop(spent)
    if node == NULL:
        return False
    fetch(node, envelope)
    context.nodes.give(spent, cell.spare)
    if cell.limits != NULL and not is_fence(node):
        cell.limits.give_back(1)
        note_taken(node, cell, context)
    return True


cdef inline bint try_idle(ActorRef ref, Context* context) noexcept:
    """Cell.try_idle(), for a caller whose reference keeps the cell, and beside whose queue nothing waits."""
    if not senders_pop(ref.cell):
        return ref.cell.try_idle()
    # Senders pop as well. Were one to pop between try_idle()'s load of the head and its exchange, and
    # its node come back as the tail, that exchange would succeed beside waiting messages.
    if not ref.cell.limits.popping.try_own():
        return False
    idle = ref.cell.try_idle()
    release_popping(ref, ref.runtime, context)
    return idle
