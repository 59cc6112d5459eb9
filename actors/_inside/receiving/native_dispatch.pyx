"""A native actor's dispatch: its messages, handed to its receive() where they lie."""

cimport cython

from callboard._inside.receiving.dispatch cimport dead_letter_all
from callboard._inside.receiving.system_messages cimport ENDED, GAVE_UP, LATER, Verdict, attend
from callboard._inside.sending.actor_cell cimport ActorCell, native_cell, note_taken
from callboard._inside.sending.letter cimport FENCE, is_fence, take_letter
from callboard._inside.sending.ref cimport LIVE, ActorRef
from callboard._inside.sending.variables cimport put_on, take_off
from callboard.core.asserting cimport holds
from callboard.core.memory.buffer cimport Buffer
from callboard.core.memory.node cimport Kind, Node, wants_answer
from callboard.native cimport NativeActor
from callboard.scheduling.cell cimport Cell, Outcome
from callboard.scheduling.context cimport Context
from callboard.scheduling.dispatching cimport account
from callboard.scheduling.turn cimport begin_turn, end_turn, goes_on

cdef extern from *:
    bint unlikely "__builtin_expect" (bint condition, bint usual) nogil

ctypedef Outcome (*Loop)(void*, void*, ActorCell*, Context*, uint32_t) noexcept nogil


@cython.nonecheck(False)
cdef Outcome run_native(Cell* plain, Context* context, uint32_t quantum) noexcept nogil:
    """Hand up to `quantum` messages to the actor's receive()."""
    cdef ActorCell* cell = <ActorCell*>plain
    cdef Outcome outcome
    assert holds(context.current == plain and plain.has(native_cell))
    if unlikely(not (<bint (*)(void*) noexcept nogil>is_live)(cell.owner) or cell.has_system(), False):
        with gil:
            if not attend_native(cell, context, &outcome):
                return outcome
    return (<Loop>run_loop)(cell.object, cell.owner, cell, context, quantum)


cdef bint attend_native(ActorCell* cell, Context* context, Outcome* outcome) noexcept:
    """Handle system messages; False, with the outcome, if no user message is to be handled."""
    cdef ActorRef ref = <ActorRef>cell.owner  # when the actor ends, this may be the last reference
    cdef Verdict verdict = attend(ref, context)
    if verdict == ENDED:
        outcome[0] = dead_letter_all(ref, context)
    else:
        outcome[0] = Outcome.more if verdict == LATER else Outcome.done
    return verdict != ENDED and verdict != LATER and verdict != GAVE_UP


@cython.nonecheck(False)
cdef bint is_live(ActorRef ref) noexcept nogil:
    return ref.phase == LIVE


@cython.nonecheck(False)
cdef Outcome run_loop(
    NativeActor actor, ActorRef ref, ActorCell* cell, Context* context, uint32_t quantum
) noexcept nogil:
    # The arguments are borrowed; the actor lives as long as its cell is in work here.
    cdef Node* spent = NULL
    cdef Node* node
    cdef uint32_t handled = 0
    cdef uint32_t limit = begin_turn(cell, context, quantum)
    assert holds(cell.object == <void*>actor and actor.asked == NULL)
    put_on(cell, context)
    if actor.context != context:  # actors of other workers may be neighbours on its cache line
        actor.context = context
    while True:
        node = cell.head.pop(spent)
        if node == NULL:
            break
        context.nodes.give(spent, cell.spare)
        handled += 1
        assert holds(node.kind > Kind.ask or is_fence(node))
        # The node stays as the queue's dummy until the next pop: receive() reads it in place.
        if node.flags & wants_answer:
            if is_fence(node):
                pass_native_fence(node)
                handled -= 1  # it does not count
                if cell.has_system() or ref.phase != LIVE:
                    take_off(cell, context)
                    account(cell, context, handled)
                    return Outcome.more
                if not goes_on(context, handled, limit):
                    break
                continue
            actor.asked = node
        if cell.limits != NULL:
            cell.limits.give_back(1)
            note_taken(node, cell, context)
        actor.receive(node)
        if actor.asked != NULL:
            answer_nothing(actor)
            assert holds(actor.asked == NULL)
        if node.kind == Kind.buffer:
            (<Buffer*>node.first).drop()
        if cell.has_system() or ref.phase != LIVE:
            take_off(cell, context)
            account(cell, context, handled)
            return Outcome.more
        if not goes_on(context, handled, limit):
            break
    take_off(cell, context)
    account(cell, context, handled)
    if handled < limit:
        end_turn(context, limit)
    elif cell.pace != 1:
        return Outcome.more  # as in run_python()
    if cell.try_idle():
        return Outcome.done
    return Outcome.more


cdef void pass_native_fence(Node* node) noexcept nogil:
    """All messages before the fence have been handled: see letter.pxd."""
    with gil:
        letter = take_letter(node)
        assert holds(letter.message is FENCE and letter.reply_to is not None)
        letter.reply_to.complete(None, None)


cdef void answer_nothing(NativeActor actor) noexcept nogil:
    """An ask that receive() left unanswered is answered with None."""
    with gil:
        actor.answer(None)
