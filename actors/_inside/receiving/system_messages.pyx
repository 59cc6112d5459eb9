"""System messages: what an actor does with them before its next message."""

from cpython.ref cimport Py_DECREF

from callboard._inside.life.ending cimport (
    begin_restart, begin_stop, end_backing_off, go_on_ending, tell_ended,
)
from callboard._inside.life.failure cimport fail
from callboard._inside.life.start cimport construct
from callboard._inside.receiving.coroutine cimport resume
from callboard._inside.receiving.errand cimport Errand
from callboard._inside.sending.ref cimport (
    CLOSED, FRESH, LIVE, SUSPENDED, ActorCell, ActorRef, cell_of,
)
from callboard._inside.sending.variables cimport put_on, replace, take_off
from callboard.core.memory.node cimport Kind, Node, relaxed
from callboard.scheduling.cell cimport Context, carrying_cell, charge


cdef Verdict attend(ActorRef ref, Context* context) noexcept:
    """Handle system messages, and bring the actor to where it can handle messages, or waits, or is
    closed."""
    cdef ActorCell* cell = cell_of(ref)
    cdef bint failed
    cdef Node* node
    cdef Node* following
    while True:
        put_on(cell, context)
        node = cell.take_system()
        while node != NULL:
            following = node.get_next(relaxed)
            first = <object>node.first
            second = <object>node.second
            kind = node.kind
            Py_DECREF(first)
            Py_DECREF(second)
            context.nodes.give(node, cell.pool)
            handle(ref, kind, first, second)
            node = following
        failed = False
        if ref.phase == FRESH:
            construct(ref, context)
            failed = ref.phase == FRESH
        if cell.has(carrying_cell) and ref.phase != SUSPENDED:
            replace(context, NULL)  # those of a message whose handler went on just now
        take_off(cell, context)
        if failed:
            charge(cell, context)
            return LATER
        if ref.phase == LIVE:
            if not cell.has_system():
                return GO_ON
        elif ref.phase == CLOSED:
            return ENDED
        else:
            if ref.phase == SUSPENDED and ref.extra.errand is not None:
                (<Errand>ref.extra.errand).launch()
            charge(cell, context)
            if cell.try_wait():
                return GAVE_UP


cdef void handle(ActorRef ref, Kind kind, object first, object second) noexcept:
    if ref.extra is not None and ref.extra.errand is not None:
        if put_off(<Errand>ref.extra.errand, kind, first, second):
            return
    if kind == Kind.stop:
        begin_stop(ref)
    elif kind == Kind.resume:
        if ref.phase == SUSPENDED and ref.extra.awaited is first:
            if ref.extra.errand is None:
                resume(ref)
            else:
                end_errand(ref, <Errand>ref.extra.errand)
    elif kind == Kind.watch:
        if ref.phase == CLOSED:
            tell_ended(ref, first)
        else:
            extra = ref.extras()
            if extra.watchers is None:
                extra.watchers = {}
            extra.watchers[first] = None
    elif kind == Kind.unwatch:
        if ref.extra is not None and ref.extra.watchers is not None:
            ref.extra.watchers.pop(first, None)
    elif kind == Kind.failed:
        fail(ref, second, None)
    elif kind == Kind.restart:
        begin_restart(ref, first)
    elif kind == Kind.ended:
        go_on_ending(ref)
    elif kind == Kind.wake:
        end_backing_off(ref)
        go_on_ending(ref)


cdef bint put_off(Errand errand, Kind kind, object first, object second) noexcept:
    """Leave a system message for later: the event loop's thread is in the middle of the actor's code."""
    if not errand.launched or (kind != Kind.stop and kind != Kind.restart and kind != Kind.failed):
        return False
    errand.postponed.append((kind, first, second))
    if kind != Kind.failed:
        errand.cancel()
    return True


cdef void end_errand(ActorRef ref, Errand errand) noexcept:
    """The event loop is done with the actor's message: go on with it, then with what was put off."""
    ref.extra.errand = None
    if not errand.was_cancelled():
        resume(ref)
    # else the stop or restart that was put off ends the message, too
    for kind, first, second in errand.postponed:
        handle(ref, kind, first, second)
