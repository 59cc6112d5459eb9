# cython: nonecheck=False
# Each message passes these lines. Only values that are compared with None may be None here.
"""Takes the messages that wait for an actor: those put back, those that its intake keeps, and its queue, in this order.

With an overflow policy by which senders pop, a thread that pops owns the popping: see overflow.pyx.
"""

from callboard._inside.sending.actor_cell cimport adopting_cell, cell_of
from callboard._inside.sending.ref cimport CLOSED, Extra
from callboard._inside.sending.stored_envelope cimport (
    CANCELLED, STOPPED, StoredEnvelope, dead_letter_and_go_on, fill_from, take_stored,
)
from callboard.core.asserting cimport holds


cdef inline bint skips(Extra extra) noexcept:
    return extra is not None and (
        extra.skips
        or (extra.concurrency is not None and extra.concurrency.closes)
        or (extra.timers is not None and extra.timers.keyed is not None)
    )


cdef TakeResult take_first(ActorRef ref, ActorCell* cell, Context* context, Envelope* envelope) noexcept:
    """Take what comes first, for an actor whose messages come by a detour."""
    cdef Extra extra = ref.extra
    cdef bint found
    if extra is not None and extra.replay:
        fill_from(extra.replay.popleft(), envelope)
        return MESSAGE
    if ref.intake is not None:
        return ref.intake.take(cell, context, envelope)
    if not senders_pop(cell):
        ref.detour = cell.has(adopting_cell) or skips(extra)
        return MESSAGE if take_oldest(cell, context, envelope) else NOTHING
    if not cell.limits.popping.try_own():
        return NOTHING  # a sender drops a message just now: come back
    found = take_oldest(cell, context, envelope)
    release_popping(ref, ref.runtime, context)
    return MESSAGE if found else NOTHING


cdef void skip(ActorRef ref, Future asked) noexcept:
    """Have the message of a cancelled ask be a dead letter when its turn comes; at once if it was put aside."""
    cdef Extra extra = ref.extras()
    cdef StoredEnvelope stored
    assert holds(ref.phase != CLOSED)
    extra.skips = True  # until the mailbox is empty: see take_by_detour()
    ref.detour = True
    for stored in list(extra.stash or ()):
        if stored.reply_to is asked:
            extra.stash.remove(stored)
            dead_letter_and_go_on(ref, ref.runtime, stored, CANCELLED)


cdef bint nothing_beside(ActorRef ref) noexcept:
    """Tell whether nothing waits beside the queue. If so, the detour is over, where it was not for ever."""
    if ref.extra is not None and ref.extra.replay:
        return False
    if ref.intake is not None:
        return ref.intake.is_empty()
    if not senders_pop(ref.cell):
        ref.detour = cell_of(ref).has(adopting_cell) or skips(ref.extra)
    return True


cdef void dead_letter_beside(ActorRef ref) noexcept:
    """Make dead letters of all that waits beside a closed actor's queue."""
    cdef Extra extra = ref.extra
    cdef StoredEnvelope stored
    cdef list envelopes = []
    assert holds(ref.phase == CLOSED)
    if extra is not None:
        envelopes += extra.replay or ()
        envelopes += extra.stash or ()
    if ref.intake is not None:
        envelopes += ref.intake.take_all(cell_of(ref))
    for stored in envelopes:
        dead_letter_and_go_on(ref, ref.runtime, stored, STOPPED)


cdef bint dead_letter_queued(ActorRef ref, Context* context, uint32_t most) noexcept:
    """Make dead letters of what waits in a closed actor's queue. False: more may wait than `most`."""
    cdef ActorCell* cell = cell_of(ref)
    cdef Node* spent = NULL
    cdef Node* node
    cdef bint drops = senders_pop(cell)
    assert holds(ref.phase == CLOSED and most > 0)
    if drops and not cell.limits.popping.try_own():
        return False
    node = cell.head.pop(spent)
    while node != NULL:
        if cell.limits != NULL and not is_fence(node):
            cell.limits.give_back(1)
        stored = take_stored(node)
        context.nodes.give(spent, cell.spare)
        dead_letter_and_go_on(ref, ref.runtime, stored, STOPPED)
        most -= 1
        node = cell.head.pop(spent) if most != 0 else NULL
    if drops:
        release_popping(ref, ref.runtime, context)
    return most != 0
