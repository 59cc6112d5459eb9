"""System messages, which an actor handles before its next message."""

from cpython.ref cimport Py_DECREF

from callboard._inside.answers.future cimport Future
from callboard._inside.life.ending cimport (
    begin_restart, begin_stop, end_backing_off, go_on_ending, tell_ended,
)
from callboard._inside.life.failure cimport fail, is_expected
from callboard._inside.life.start cimport construct, promise_start
from callboard._inside.life.flights cimport ConcurrentMessage
from callboard._inside.receiving.concurrent cimport interrupt_flight, resume_flight
from callboard._inside.receiving.coroutine cimport begin_leaving, begin_start, begin_task, interrupt, resume
from callboard._inside.receiving.errand cimport Errand
from callboard._inside.sending.actor_cell cimport ActorCell, cell_of, closed_cell, wearing_cell
from callboard._inside.sending.dead_lettering cimport STOPPED, dead_letter_and_go_on
from callboard._inside.sending.letter cimport FENCE, Letter, letter_of
from callboard._inside.sending.ref cimport CLOSED, FRESH, LIVE, RESTARTING, SUSPENDED, ActorRef, Extra
from callboard._inside.sending.system_kind cimport SystemKind
from callboard._inside.sending.variables cimport put_on, replace, take_off
from callboard._inside.sending.waiting cimport skip
from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport Node, relaxed
from callboard.core.monitoring.records cimport state_ended
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport Context
from callboard.scheduling.dispatching cimport charge


cdef Verdict attend(ActorRef ref, Context* context) noexcept:
    """Handle system messages, and bring the actor to where it can handle messages, or waits, or is
    closed."""
    cdef ActorCell* cell = cell_of(ref)
    cdef bint failed
    cdef Node* node
    cdef Node* following
    while True:
        assert holds(context.current == <Cell*>cell)
        if ref.extra is not None and ref.extra.lets_others_run:
            ref.extra.lets_others_run = False
            charge(cell, context)
            return LATER
        put_on(cell, context)
        node = cell.take_system()
        while node != NULL:
            following = node.get_next(relaxed)
            first = <object>node.first
            second = <object>node.second
            kind = <SystemKind>node.kind
            assert holds(kind <= SystemKind.fence)
            Py_DECREF(first)
            Py_DECREF(second)
            context.nodes.give(node, cell.spare)
            handle(ref, kind, first, second)
            node = following
        failed = False
        if ref.phase == FRESH:
            starting = construct(ref, context)
            if starting is not None:
                begin_start(ref, starting)
            elif ref.phase == LIVE and ref.recipe.runs:
                begin_task(ref)
            failed = ref.phase == FRESH  # it restarts
        elif ref.extra is not None and ref.extra.leaving is not None and ref.extra.coroutine is None:
            begin_leaving(ref)
            take_off(cell, context)
            continue
        if cell.has(wearing_cell) and ref.phase != SUSPENDED:
            replace(context, NULL)  # those of a message whose handler went on just now
        take_off(cell, context)
        if failed:
            charge(cell, context)
            return LATER
        if ref.phase == LIVE:
            if not cell.has_system():
                assert holds(ref.instance is not None and cell.in_work == NULL)
                return GO_ON
        elif ref.phase == CLOSED:
            assert holds(cell.has(closed_cell) and cell.in_work == NULL)
            if context.recorder != NULL:
                context.recorder.note_state(state_ended)
            return ENDED
        else:
            if ref.extra is not None and ref.extra.errand is not None:
                (<Errand>ref.extra.errand).launch()
            charge(cell, context)
            if ref.extra is not None and ref.extra.yields:
                ref.extra.yields = False
                ref.send_system(SystemKind.resume, ref.extra.awaited, None)
                return LATER
            if context.recorder != NULL:
                note_state(ref, context)
            if cell.try_wait():
                return GAVE_UP


cdef void note_state(ActorRef ref, Context* context) noexcept:
    """Tell monitoring in which state the actor's dispatch ends."""
    cdef Future awaited = ref.extra.awaited if ref.phase == SUSPENDED else None
    if awaited is not None:
        awaited.note_block()
        context.recorder.note_state(awaited.blocks_on())


cdef void handle(ActorRef ref, SystemKind kind, object first, object second) noexcept:
    if ref.extra is not None and ref.extra.errand is not None:
        if ref.phase < RESTARTING and put_off(<Errand>ref.extra.errand, kind, first, second):
            return
    if kind == SystemKind.stop:
        begin_stop(ref)
    elif kind == SystemKind.resume:
        if second is not None:
            if (<ConcurrentMessage>second).awaited is first:
                resume_flight(<ConcurrentMessage>second)
        elif ref.extra is None:
            pass
        elif (ref.phase == SUSPENDED or ref.extra.leaving is not None) and ref.extra.awaited is first:
            assert holds(ref.extra.coroutine is not None)
            if ref.extra.errand is None:
                resume(ref)
            else:
                end_errand(ref, <Errand>ref.extra.errand)
    elif kind == SystemKind.watch:
        if ref.phase == CLOSED:
            tell_ended(ref, first)
        else:
            extra = ref.extras()
            if extra.watchers is None:
                extra.watchers = {}
            extra.watchers[first] = None
    elif kind == SystemKind.unwatch:
        if ref.extra is not None and ref.extra.watchers is not None:
            ref.extra.watchers.pop(first, None)
    elif kind == SystemKind.failed:
        if first is not ref or not is_expected(ref, second):  # it is the actor itself where that is native
            fail(ref, second, None)
    elif kind == SystemKind.restart:
        begin_restart(ref, first)
    elif kind == SystemKind.ended:
        go_on_ending(ref)
    elif kind == SystemKind.wake:
        end_backing_off(ref)
        go_on_ending(ref)
    elif kind == SystemKind.ready:
        promise_start(ref, first)
    elif kind == SystemKind.cancel:
        end_cancelled(ref, <Future>first)
    elif kind == SystemKind.fence:
        take_fence(ref, letter_of(FENCE, None, <Future>first))


cdef void take_fence(ActorRef ref, Letter fence) noexcept:
    """Take a fence out of the queue's turn: nothing waits before it, but what was put back, or is in the middle."""
    if ref.phase == CLOSED:
        dead_letter_and_go_on(ref, ref.runtime, fence, STOPPED)
    else:
        ref.extras().replay_last(fence)
        ref.detour = True


cdef void end_cancelled(ActorRef ref, Future asked) noexcept:
    """End the work on a message whose asker has cancelled it, or skip it when its turn comes."""
    if ref.phase == CLOSED:
        return
    for flight in list(ref.extra.flights) if ref.extra is not None and ref.extra.flights else ():
        if interrupt_flight(<ConcurrentMessage>flight, asked):
            return
    if not is_in_work(ref.extra, asked):
        skip(ref, asked)
    elif ref.extra.errand is None:
        interrupt(ref)
    else:
        (<Errand>ref.extra.errand).withdraw()


cdef bint is_in_work(Extra extra, Future asked) noexcept:
    """Tell whether the coroutine in the middle handles this ask."""
    return (
        extra is not None and extra.coroutine is not None and extra.letter is not None
        and extra.letter.reply_to is asked and not extra.stashed
    )


cdef bint put_off(Errand errand, SystemKind kind, object first, object second) noexcept:
    """Leave a system message for later: the event loop's thread is in the middle of the actor's code."""
    if not errand.launched or kind not in (
        SystemKind.stop, SystemKind.restart, SystemKind.failed, SystemKind.cancel, SystemKind.fence,
    ):
        return False
    if kind == SystemKind.cancel and errand.is_of(first):
        errand.withdraw()
        return True
    errand.postponed.append((kind, first, second))
    if kind == SystemKind.stop or kind == SystemKind.restart:
        errand.cancel()
    return True


cdef void end_errand(ActorRef ref, Errand errand) noexcept:
    """The event loop is done with the actor's message: go on with it, then with what was put off."""
    assert holds(errand.over and (<Future>errand.outcome).flag.is_set())
    ref.extra.errand = None
    if not errand.was_cancelled():
        resume(ref)
    # else the stop or restart that was put off ends the message, too
    for kind, first, second in errand.postponed:
        handle(ref, kind, first, second)
