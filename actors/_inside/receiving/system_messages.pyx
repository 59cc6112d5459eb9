"""System messages, which an actor handles before its next message."""

from cpython.ref cimport Py_DECREF

from callboard._inside.answers.future cimport Future
from callboard._inside.life.ending cimport begin_restart, begin_stop, end_backing_off, go_on_ending, tell_ended
from callboard._inside.life.failure cimport fail, is_expected
from callboard._inside.life.start cimport construct, promise_start
from callboard._inside.life.unfinished cimport ConcurrentMessage
from callboard._inside.receiving.coroutine cimport (
    begin_leaving, begin_start, begin_task, interrupt, interrupt_concurrent, resume, resume_concurrent,
)
from callboard._inside.receiving.loop_task cimport LoopTask
from callboard._inside.sending.actor_cell cimport ActorCell, adopting_cell, cell_of, closed_cell
from callboard._inside.sending.mailbox_take cimport skip
from callboard._inside.sending.ref cimport CLOSED, FRESH, LIVE, RESTARTING, SUSPENDED, ActorRef, Extra
from callboard._inside.sending.state cimport Concurrency, Watches
from callboard._inside.sending.stored_envelope cimport (
    FENCE, STOPPED, StoredEnvelope, dead_letter_and_go_on, stored_envelope,
)
from callboard._inside.sending.system_kind cimport SystemKind
from callboard._inside.sending.variables cimport enter_variables, leave_variables, replace
from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport Node, relaxed
from callboard.core.monitoring.records cimport state_ended
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport Context
from callboard.scheduling.dispatching cimport charge


cdef Verdict handle_system(ActorRef ref, Context* context) noexcept:
    """Handle system messages, and bring the actor to where it can handle messages, or waits, or is
    closed."""
    cdef ActorCell* cell = cell_of(ref)
    cdef bint failed
    cdef Node* node
    cdef Node* following
    while True:
        assert holds(context.current == <Cell*>cell)
        if ref.extra is not None and ref.extra.concurrency is not None and ref.extra.concurrency.lets_others_run:
            ref.extra.concurrency.lets_others_run = False
            charge(cell, context)
            return LATER
        enter_variables(cell, context)
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
            leave_variables(cell, context)
            continue
        if cell.has(adopting_cell) and ref.phase != SUSPENDED:
            replace(context, NULL)  # those of a message whose handler went on just now
        leave_variables(cell, context)
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
            if ref.extra is not None and ref.extra.loop_task is not None:
                (<LoopTask>ref.extra.loop_task).launch()
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
    cdef Watches watches
    if ref.extra is not None and ref.extra.loop_task is not None:
        if ref.phase < RESTARTING and put_off(<LoopTask>ref.extra.loop_task, kind, first, second):
            return
    if kind == SystemKind.stop:
        begin_stop(ref)
    elif kind == SystemKind.resume:
        if second is not None:
            if (<ConcurrentMessage>second).awaited is first:
                resume_concurrent(<ConcurrentMessage>second)
        elif ref.extra is None:
            pass
        elif (ref.phase == SUSPENDED or ref.extra.leaving is not None) and ref.extra.awaited is first:
            assert holds(ref.extra.coroutine is not None)
            if ref.extra.loop_task is None:
                resume(ref)
            else:
                end_loop_task(ref, <LoopTask>ref.extra.loop_task)
    elif kind == SystemKind.watch:
        if ref.phase == CLOSED:
            tell_ended(ref, first)
        else:
            watches = ref.extras().watches_now()
            if watches.watchers is None:
                watches.watchers = {}
            watches.watchers[first] = None
    elif kind == SystemKind.unwatch:
        watches = ref.extra.watches if ref.extra is not None else None
        if watches is not None and watches.watchers is not None:
            watches.watchers.pop(first, None)
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
        take_fence(ref, stored_envelope(FENCE, None, <Future>first))


cdef void take_fence(ActorRef ref, StoredEnvelope fence) noexcept:
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
    cdef Concurrency concurrency = ref.extra.concurrency if ref.extra is not None else None
    for message in list(concurrency.messages) if concurrency is not None else ():
        if interrupt_concurrent(<ConcurrentMessage>message, asked):
            return
    if not is_in_work(ref.extra, asked):
        skip(ref, asked)
    elif ref.extra.loop_task is None:
        interrupt(ref)
    else:
        (<LoopTask>ref.extra.loop_task).withdraw()


cdef bint is_in_work(Extra extra, Future asked) noexcept:
    """Tell whether the coroutine in the middle handles this ask."""
    return (
        extra is not None and extra.coroutine is not None and extra.stored is not None
        and extra.stored.reply_to is asked and not extra.stashed
    )


cdef bint put_off(LoopTask loop_task, SystemKind kind, object first, object second) noexcept:
    """Leave a system message for later: the event loop's thread is in the middle of the actor's code."""
    if not loop_task.launched or kind not in (
        SystemKind.stop, SystemKind.restart, SystemKind.failed, SystemKind.cancel, SystemKind.fence,
    ):
        return False
    if kind == SystemKind.cancel and loop_task.is_of(first):
        loop_task.withdraw()
        return True
    loop_task.postponed.append((kind, first, second))
    if kind == SystemKind.stop or kind == SystemKind.restart:
        loop_task.cancel()
    return True


cdef void end_loop_task(ActorRef ref, LoopTask loop_task) noexcept:
    """The event loop is done with the actor's message: go on with it, then with what was put off."""
    assert holds(loop_task.over and (<Future>loop_task.outcome).flag.is_set())
    ref.extra.loop_task = None
    if not loop_task.was_cancelled():
        resume(ref)
    # else the stop or restart that was put off ends the message, too
    for kind, first, second in loop_task.postponed:
        handle(ref, kind, first, second)
