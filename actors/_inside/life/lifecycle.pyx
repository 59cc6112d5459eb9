"""An actor's life after its spawn: start, system messages, restart, stop.

Everything here runs in the dispatch of the actor that it concerns, by the thread that has its
readiness, so an actor's own state needs no lock. What concerns two actors at once (a parent and a
child that ends) is done under the parent's critical section on a free-threaded build.
"""

from collections import deque

cimport cython
from cpython.object cimport PyObject_GenericSetAttr
from cpython.ref cimport Py_DECREF

from callboard._inside.receiving.answering cimport fail_owed
from callboard._inside.receiving.coroutine cimport close_coroutine, resume
from callboard._inside.receiving.errand cimport Errand
from callboard._inside.sending.ref cimport (
    CLOSED, FRESH, LIVE, RESTARTING, STOPPING, SUSPENDED, ActorRef, Extra, Recipe,
)
from callboard._inside.sending.runtime cimport Runtime
from callboard._inside.receiving.variables cimport put_on, replace, take_off
from callboard.core.node cimport Kind, Node, relaxed
from callboard.scheduling.cell cimport (
    Cell, Context, carrying_cell, charge, closed_cell, dedicated_cell,
)
from callboard.scheduling.context cimport current_context

from callboard.core.errors import ActorStopped
from callboard.core.log import log
from callboard.messages import Terminated

cdef extern from *:
    """
    // Takes the exception that a C call left: Cython's `except` does the rest.
    static int callboard_reraise(void) { return -1; }
    """
    int reraise "callboard_reraise" () except -1


cdef object current_error():
    """Take the exception that is set, normalised and with its traceback."""
    try:
        reraise()
    except BaseException as error:
        return error


cdef Verdict attend(ActorRef ref, Context* context) noexcept:
    """Handle system messages, and bring the actor to where it can handle messages, or waits, or is
    closed."""
    cdef Cell* cell = ref.cell
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
            handle(ref, kind, first, second, context)
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


cdef void handle(ActorRef ref, Kind kind, object first, object second, Context* context) noexcept:
    if ref.extra is not None and ref.extra.errand is not None:
        if put_off(<Errand>ref.extra.errand, kind, first, second):
            return
    if kind == Kind.stop:
        begin_stop(ref)
    elif kind == Kind.resume:
        if ref.phase == SUSPENDED and ref.extra.awaited is first:
            if ref.extra.errand is None:
                resume(ref, context)
            else:
                end_errand(ref, <Errand>ref.extra.errand, context)
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


cdef void end_errand(ActorRef ref, Errand errand, Context* context) noexcept:
    """The event loop is done with the actor's message: go on with it, then with what was put off."""
    ref.extra.errand = None
    if not errand.was_cancelled():
        resume(ref, context)
    # else the stop or restart that was put off ends the message, too
    for kind, first, second in errand.postponed:
        handle(ref, kind, first, second, context)


# --- start ------------------------------------------------------------------------------------------


cdef int make(ActorRef ref, Recipe recipe, Context* context) except -1:
    """Make the object so that it knows its ref when its `__init__` begins."""
    if recipe.native:
        context.constructing = <void*>ref
        try:
            ref.instance = recipe.cls(*recipe.args, **recipe.kwargs)
        finally:
            context.constructing = NULL
    else:
        instance = recipe.cls.__new__(recipe.cls, *recipe.args, **recipe.kwargs)
        # Generic: a class with a __setattr__ of its own, such as a frozen dataclass, has no say in it.
        PyObject_GenericSetAttr(instance, "_callboard_ref", ref)
        instance.__init__(*recipe.args, **recipe.kwargs)
        ref.instance = instance
    return 0


cdef void construct(ActorRef ref, Context* context) noexcept:
    """Make the user's object. A failure is the actor's, and goes to its supervisor."""
    cdef Recipe recipe = ref.recipe
    try:
        make(ref, recipe, context)
        ref.cell.object = <void*>ref.instance
        if recipe.native:
            ref.bound = True
        elif recipe.receive is not None:
            ref.handler = recipe.receive
            ref.bound = False
        else:
            ref.handler = ref.instance.receive
            ref.bound = True
        ref.phase = LIVE
        if recipe.starts:
            ref.instance.on_start()
    except BaseException as error:
        ref.phase = FRESH
        fail(ref, error, None)


# --- failure ----------------------------------------------------------------------------------------


cdef void fail_message(
    ActorRef ref, object error, object message, object second, bint asked
) noexcept:
    """Handling `message` raised `error`: it is a dead letter, and who asked gets the error."""
    try:
        ref.post_dead(message, second, asked, "failed", error, error)
    except BaseException as another:
        log.error("a dead letter could not be posted", actor=ref.path, exc_info=another)
    fail(ref, error, message)


cdef void fail(ActorRef ref, object error, object message) noexcept:
    """The actor raised `error`: tell everyone concerned, and let the supervisor decide.

    `message` is what it handled, if anything; it is not lost: it never came to be, or was put aside.
    """
    try:
        log.error("actor failed", actor=ref.path, error=error, exc_info=error)
        ref.runtime.dead_letters.note_failure(ref, error)
        if ref.recipe.fails and ref.instance is not None:
            try:
                ref.instance.on_failure(error, message)
            except BaseException as another:
                log.error("on_failure failed", actor=ref.path, exc_info=another)
        decide(ref, error)
    except BaseException as another:
        log.error("a supervisor failed; its actor stops", actor=ref.path, exc_info=another)
        ref.runtime.dead_letters.note_fatal(ref, error)
        begin_stop(ref)


cdef int decide(ActorRef ref, object error) except -1:
    cdef ActorRef other
    directive = ref.recipe.supervision.decide(error)
    if directive == "resume" and ref.phase == FRESH:
        directive = "stop"  # there is no object that could go on
    for other in others_in_scope(ref):
        if directive == "restart":
            other.signal(Kind.restart, error, None)
        elif directive == "stop":
            other.signal(Kind.stop, None, None)
    if directive == "restart":
        begin_restart(ref, error)
    elif directive == "escalate":
        parent = ref.parent
        runtime = ref.runtime
        begin_stop(ref)
        if parent is not None:
            parent.signal(Kind.failed, ref, error)
        else:
            runtime.dead_letters.note_fatal(ref, error)
            runtime.failure = error
            runtime.on_change()
    elif directive == "stop":
        ref.runtime.dead_letters.note_fatal(ref, error)
        begin_stop(ref)
    return 0


cdef list others_in_scope(ActorRef ref):
    """The siblings that share `ref`'s fate: all, or those spawned after it."""
    scope = ref.recipe.supervision.scope
    if scope == "one":
        return []
    siblings = list(ref.parent.children_of if ref.parent is not None else ref.runtime.children)
    if scope == "rest":
        siblings = siblings[siblings.index(ref):]
    return [other for other in siblings if other is not ref]


# --- restart ----------------------------------------------------------------------------------------


cdef void begin_restart(ActorRef ref, object error) noexcept:
    """Start anew once the children have ended; the mailbox keeps its messages."""
    cdef Extra extra = ref.extras()
    if ref.phase >= RESTARTING:
        return
    supervision = ref.recipe.supervision
    now = ref.runtime.timers.now()
    if extra.restarts is None:
        extra.restarts = deque()
    while extra.restarts and now - extra.restarts[0] > supervision.window:
        extra.restarts.popleft()
    if supervision.limit is not None and len(extra.restarts) >= supervision.limit:
        log.error("too many restarts; the actor stops", actor=ref.path, limit=supervision.limit,
                  window=supervision.window)
        ref.runtime.dead_letters.note_fatal(ref, error)
        begin_stop(ref)
        return
    delay = supervision.delay(len(extra.restarts))
    extra.restarts.append(now)
    close_coroutine(ref, error)
    if extra.owed:
        fail_owed(ref, error)
    cancel_timers(ref)
    ref.phase = RESTARTING
    if delay > 0:
        extra.backing_off = True
        ref.runtime.team.add_waiting(1)
        ref.runtime.timers.call_after(delay, _EndBackOff(ref))
    stop_children(ref)
    go_on_ending(ref)


cdef class _EndBackOff:
    cdef ActorRef ref

    def __init__(self, ref):
        self.ref = ref

    def __call__(self):
        self.ref.signal(Kind.wake, None, None)


cdef void restart_now(ActorRef ref) noexcept:
    cdef Extra extra = ref.extra
    log.warning("actor restarts", actor=ref.path)
    run_on_stop(ref)
    replace(current_context(), NULL)  # a new object has no variables yet
    ref.instance = None
    ref.handler = None
    extra.behaviours = None
    if extra.stash:
        replay = extra.replay if extra.replay is not None else deque()
        replay.extendleft(reversed(extra.stash))
        extra.replay = replay
        extra.stash = None
        ref.detour = True
    ref.phase = FRESH


# --- stop -------------------------------------------------------------------------------------------


cdef void begin_stop(ActorRef ref) noexcept:
    """Close once the children have ended."""
    if ref.phase >= STOPPING:
        return
    if ref.extra is not None:
        close_coroutine(ref, ActorStopped(f"{ref.path} was stopped in the middle of the ask"))
        end_backing_off(ref)
    with cython.critical_section(ref):
        ref.phase = STOPPING  # from here on a child that ends says so, and none can be spawned
    stop_children(ref)
    go_on_ending(ref)


cdef void stop_children(ActorRef ref) noexcept:
    cdef ActorRef child
    if ref.children_of:
        for child in list(ref.children_of):
            child.signal(Kind.stop, None, None)


cdef void go_on_ending(ActorRef ref) noexcept:
    """Finish a stop or a restart if nothing stands in its way any more."""
    if ref.phase != STOPPING and ref.phase != RESTARTING:
        return
    with cython.critical_section(ref):
        waits = bool(ref.children_of)
    if waits:
        return
    if ref.phase == STOPPING:
        close(ref)
    elif not ref.extra.backing_off:
        restart_now(ref)


cdef void end_backing_off(ActorRef ref) noexcept:
    if ref.extra is not None and ref.extra.backing_off:
        ref.extra.backing_off = False
        ref.runtime.team.add_waiting(-1)


cdef void close(ActorRef ref) noexcept:
    """The actor's end: its hook, then everyone who must know. Its mailbox's rest is buried by the
    dispatch that this runs in."""
    cdef Extra extra
    cdef ActorRef other
    error = run_on_stop(ref)
    extra = ref.extra
    if extra is not None and extra.owed:  # on_stop() was the last occasion to do what was owed
        fail_owed(ref, ActorStopped(f"{ref.path} has stopped; it had answered with a future of its own"))
    if error is not None:
        ref.runtime.dead_letters.note_fatal(ref, error)
    if ref.cell.has(dedicated_cell):
        ref.runtime.team.retire(ref.cell)
    ref.cell.set(closed_cell)
    ref.phase = CLOSED
    if extra is not None:
        cancel_timers(ref)
        for letters in (extra.replay, extra.stash):
            if letters:
                for message, second, asked in letters:
                    bury(ref, message, second, asked)
        if extra.heap:
            if ref.cell.limits != NULL:
                ref.cell.limits.give_back(len(extra.heap))
            for _, _, message, second, asked in sorted(extra.heap, key=_arrival):
                bury(ref, message, second, asked)
        if extra.watching is not None:
            for other in extra.watching:
                other.signal(Kind.unwatch, ref, None)
        watchers = extra.watchers
        with cython.critical_section(ref):  # others may look into it: ActorRef.awaited()
            ref.extra = None
        if watchers:
            for other in watchers:
                tell_ended(ref, other)
    ref.instance = None
    ref.handler = None
    replace(current_context(), NULL)
    forget_arguments(ref.recipe)
    leave_parent(ref)


cdef dict NO_KWARGS = {}  # nobody changes it


cdef void forget_arguments(Recipe recipe) noexcept:
    """Nothing is made of them any more, and others may hold the ref for long."""
    if recipe.args or recipe.kwargs or recipe.key is not None:  # else it is shared by the class's actors
        recipe.args = ()
        recipe.kwargs = NO_KWARGS
        recipe.key = None


def _arrival(entry):
    return entry[1]


cdef void leave_parent(ActorRef ref) noexcept:
    cdef ActorRef parent = ref.parent
    cdef Runtime runtime = ref.runtime
    if ref.own_name is not None:
        runtime.names.pop((parent, ref.own_name), None)
    if parent is None:
        runtime.children.pop(ref, None)
        if not runtime.children and runtime.on_change is not None:
            runtime.on_change()
        return
    with cython.critical_section(parent):
        parent.children_of.pop(ref, None)
        waits = parent.phase >= RESTARTING and not parent.children_of
    if waits:
        parent.signal(Kind.ended, ref, None)


cdef object run_on_stop(ActorRef ref):
    """Return what the hook raised, or None."""
    if ref.recipe.stops and ref.instance is not None:
        try:
            ref.instance.on_stop()
        except BaseException as error:
            log.error("on_stop failed", actor=ref.path, exc_info=error)
            ref.runtime.dead_letters.note_failure(ref, error)
            return error
    return None


cdef void tell_ended(ActorRef ref, ActorRef watcher) noexcept:
    try:
        watcher._tell_past_capacity(Terminated(ref))
    except BaseException as error:
        log.error("a watcher could not be told", actor=ref.path, watcher=watcher.path, exc_info=error)


cdef void cancel_timers(ActorRef ref) noexcept:
    timers = ref.extra.timers
    ref.extra.timers = None
    if timers:
        for timer in list(timers):
            timer.cancel()


cdef void bury(ActorRef ref, object message, object second, bint asked) noexcept:
    """Make a dead letter of a message that a closed actor will not handle."""
    try:
        reason = "system stopped" if ref.runtime.closing else "stopped"
        answer = ActorStopped(f"{ref.path} has stopped") if asked else None
        ref.post_dead(message, second, asked, reason, None, answer)
    except BaseException as error:
        log.error("a dead letter could not be posted", actor=ref.path, exc_info=error)
