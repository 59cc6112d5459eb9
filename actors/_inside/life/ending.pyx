"""An actor's restart and stop, and the end of its resources and of its deferred answers.

Everything here runs in the dispatch of the actor that it concerns, by the thread that has its readiness, so an
actor's own state needs no lock. Work that concerns two actors at once (a parent and a child that ends) is done
under the parent's critical section on a free-threaded build.
"""

from collections import deque
from functools import partial

cimport cython
from cpython.object cimport PyObject

from callboard._inside.answers.future cimport Future
from callboard._inside.life.unfinished cimport close_coroutine, waits_for_concurrent
from callboard._inside.sending.mailbox_take cimport dead_letter_beside
from callboard._inside.sending.ref cimport FRESH, RESTARTING, STOPPING, ActorRef, Extra, Recipe
from callboard._inside.sending.runtime cimport Runtime
from callboard._inside.sending.state cimport TimersOfActor, Watches
from callboard._inside.sending.stored_envelope cimport stopped
from callboard._inside.sending.system_kind cimport SystemKind
from callboard._inside.sending.variables cimport replace
from callboard.core.asserting cimport holds
from callboard.scheduling.context cimport current_context
from callboard.scheduling.team cimport Team

from callboard.core.log import log
from callboard.messages import Terminated


cdef extern from "Python.h":
    int PyCoro_CheckExact(PyObject* object)


# --- restart ----------------------------------------------------------------------------------------


cdef void begin_restart(ActorRef ref, object error) noexcept:
    """Start again once the children have ended; the mailbox keeps its messages."""
    cdef Extra extra = ref.extras()
    assert holds(current_context().current == ref.cell)
    if ref.phase >= RESTARTING or waits_for_concurrent(ref, error):
        return
    supervision = ref.recipe.supervision
    now = ref.runtime.timers.now()
    if extra.restarts is None:
        extra.restarts = deque()
    while extra.restarts and now - extra.restarts[0] > supervision.window:
        extra.restarts.popleft()
    if supervision.limit is not None and len(extra.restarts) >= supervision.limit:
        log.error("too many restarts; the actor stops", actor=ref._short_path, limit=supervision.limit,
                  window=supervision.window)
        ref.runtime.dead_letters.note_fatal(ref, error, begun=ref.phase != FRESH and not ref.starting)
        begin_stop(ref)
        return
    delay = supervision._delay(len(extra.restarts))
    extra.restarts.append(now)
    ref.runtime.dead_letters.note_restart(ref)
    close_coroutine(ref, error)
    assert holds(extra.coroutine is None and not extra.detached and not extra.backing_off)
    if extra.deferred:
        fail_deferred(ref, error)
    cancel_timers(ref)
    with cython.critical_section(ref):
        ref.phase = RESTARTING  # from here on none can be spawned
    if delay > 0:
        extra.backing_off = True
        ref.runtime.team.add_waiting(1)
        ref.runtime.timers.call_after(delay, partial(_end_backing_off, ref))
    unwatch_children(ref)
    stop_children(ref)
    go_on_ending(ref)


def _end_backing_off(ActorRef ref):
    ref.send_system(SystemKind.wake, None, None)


cdef void restart_now(ActorRef ref) noexcept:
    cdef Extra extra = ref.extra
    log.warning("actor restarts", actor=ref._short_path)
    assert holds(ref.phase == RESTARTING and not ref.children_of and extra.coroutine is None)
    cancel_timers(ref)  # those of on_stop()
    replace(current_context(), NULL)  # a new object has no variables yet
    ref.instance = None
    ref.handler = None
    extra.behaviours = None
    if extra.stash:
        ref.put_back(extra.stash)
        extra.stash = None
    ref.phase = FRESH


# --- stop -------------------------------------------------------------------------------------------


cdef void begin_stop(ActorRef ref) noexcept:
    """Close once the children have ended."""
    if ref.phase >= STOPPING:
        return
    assert holds(current_context().current == ref.cell)
    ref.ending = ref.runtime.ending()
    if ref.extra is not None:
        if waits_for_concurrent(ref, None):
            return
        if ref.extra.coroutine is not None and ref.extra.leaving is None:
            close_coroutine(ref, stopped(ref, ref.runtime, "; it was in the middle of the ask"))
        end_backing_off(ref)
        assert holds(ref.extra.leaving is not None or ref.extra.coroutine is None and not ref.extra.detached)
        assert holds(not ref.extra.backing_off)
    with cython.critical_section(ref):
        ref.phase = STOPPING  # from here on a child that ends says so, and none can be spawned
    stop_children(ref)
    go_on_ending(ref)


cdef void stop_children(ActorRef ref) noexcept:
    cdef ActorRef child
    assert holds(ref.phase == STOPPING or ref.phase == RESTARTING)
    if ref.children_of:
        for child in list(ref.children_of):
            if ref.phase == STOPPING:
                ref.runtime.dead_letters.note_end_with(child, ref)
            child.send_system(SystemKind.stop, None, None)


cdef void unwatch_children(ActorRef ref) noexcept:
    """Unwatch the children that a restart stops: the next object never had them, and is not told of their ends."""
    cdef ActorRef child
    cdef dict watching = ref.extra.watches.watching if ref.extra.watches is not None else None
    if watching is not None and ref.children_of:
        for child in list(ref.children_of):
            if child in watching:
                del watching[child]
                child.send_system(SystemKind.unwatch, ref, None)


cdef void go_on_ending(ActorRef ref) noexcept:
    """Finish a stop or a restart if nothing stands in its way."""
    if ref.phase != STOPPING and ref.phase != RESTARTING or ref.extra is not None and ref.extra.leaving is not None:
        return
    with cython.critical_section(ref):
        waits = bool(ref.children_of)
    if waits:
        return
    if ref.phase == STOPPING or not ref.extra.backing_off:
        leave(ref)


cdef void end_after_concurrent(ActorRef ref) noexcept:
    """The last concurrent message is over for which a stop or a restart waited."""
    error = ref.extra.concurrency.ends_by
    if error is None:
        begin_stop(ref)
    else:
        begin_restart(ref, error)


# --- the hook of the end ------------------------------------------------------------------------------


cdef void leave(ActorRef ref) noexcept:
    """Run the hook. Its coroutine, if it is one, is driven by the dispatch, and calls note_left() at its end."""
    if ref.recipe.stops and ref.instance is not None:
        try:
            leaving = ref.instance.on_stop()
            if PyCoro_CheckExact(<PyObject*>leaving):
                if not (ref.recipe.runs or ref.recipe.native):
                    ref.extras().leaving = leaving
                    return
                leaving.close()
                raise TypeError(f"{ref._short_path}: on_stop() returned a coroutine, which would not be awaited")
        except BaseException as error:
            note_left(ref, error)
            return
    note_left(ref, None)


cdef void note_left(ActorRef ref, object error) noexcept:
    """The hook is through: end, or start again. `error` is what it raised."""
    assert holds(ref.phase == STOPPING or ref.phase == RESTARTING)
    if ref.extra is not None:
        ref.extra.leaving = None
    if error is not None:
        log.error("on_stop failed", actor=ref._short_path, exc_info=error)
        ref.runtime.dead_letters.note_failure(ref, error)
    if ref.phase == STOPPING:
        close(ref, error)
    else:
        restart_now(ref)


cdef void note_end(object scan, ActorRef ref) noexcept:
    """Tell an ActorScan, or None, of an actor's end: it walks over the actor no more."""
    if scan is not None:
        scan.note_end(ref)


cdef void end_backing_off(ActorRef ref) noexcept:
    if ref.extra is not None and ref.extra.backing_off:
        ref.extra.backing_off = False
        ref.runtime.team.add_waiting(-1)


cdef void close(ActorRef ref, object error) noexcept:
    """The actor's end after its hook, which raised `error` or None: tell everyone concerned. The rest of its
    mailbox is dead-lettered by the dispatch that this runs in."""
    cdef Extra extra
    cdef Watches watches
    cdef ActorRef other
    assert holds(ref.phase == STOPPING and not ref.children_of and ref.ending is not None)
    extra = ref.extra
    if extra is not None and extra.deferred:  # on_stop() was the last occasion to answer
        fail_deferred(ref, stopped(ref, ref.runtime, "; it had answered with its own future"))
    if error is not None:
        ref.runtime.dead_letters.note_fatal(ref, error)
    if extra is not None and extra.resources is not None:
        let_go(ref, extra)
    ref.runtime.team.end_dedicated(ref.cell)
    ref.mark_closed()
    if extra is not None:
        cancel_timers(ref)
    dead_letter_beside(ref)
    assert holds(ref.intake is None or ref.intake.is_empty())
    if extra is not None:
        watches = extra.watches
        if watches is not None and watches.watching is not None:
            for other in watches.watching:
                other.send_system(SystemKind.unwatch, ref, None)
        with cython.critical_section(ref):  # others may look into it: ActorRef.awaited()
            ref.extra = None
        if watches is not None:
            for watcher in watches.watchers or ():
                tell_ended(ref, watcher)
            for future in watches.starts or ():
                (<Future>future).complete(None, stopped(ref, ref.runtime))
    ref.instance = None
    ref.handler = None
    replace(current_context(), NULL)
    forget_arguments(ref.recipe)
    ref.cell.spare.free_all()  # others may hold the ref for long
    leave_parent(ref)
    for scan in ref.runtime.scans:
        note_end(scan(), ref)


cdef void let_go(ActorRef ref, Extra extra) noexcept:
    """End what ends with the actor."""
    cdef OwnedResource resource
    failure = ref.runtime.dead_letters.end_of(ref).error
    things, extra.resources = extra.resources, None
    for resource in things:
        resource.let_go(failure)


cdef dict NO_KWARGS = {}  # nobody changes it


cdef void forget_arguments(Recipe recipe) noexcept:
    """No object is made of them again, and others may hold the ref for long."""
    if recipe.args or recipe.kwargs:  # else it may be shared by the class's actors
        recipe.args = ()
        recipe.kwargs = NO_KWARGS


cdef void leave_parent(ActorRef ref) noexcept:
    cdef ActorRef parent = <ActorRef>ref.parent
    cdef Runtime runtime = ref.runtime
    if ref.own_name is not None:
        runtime.names.pop((parent, ref.own_name), None)
    if parent is None:
        runtime.children.pop(ref, None)
        if not runtime.children:
            runtime.tell_change()  # a stop waits for its end, though its spawn may have failed
        return
    with cython.critical_section(parent):
        was_child = parent.children_of is not None and ref in parent.children_of  # else its spawn failed
        if was_child:
            del parent.children_of[ref]
        waits = was_child and parent.phase >= RESTARTING and not parent.children_of
    if waits:
        parent.send_system(SystemKind.ended, ref, None)


cdef void tell_ended(ActorRef ref, object watcher) noexcept:
    """Tell an actor that watches, or complete a future of the end."""
    try:
        end = ref.runtime.dead_letters.end_of(ref)
        if isinstance(watcher, Future):
            (<Future>watcher).complete(end, None)
        else:
            watcher._tell_past_capacity(Terminated(ref, end.cause, end.reason))
    except BaseException as error:
        log.error("a watcher could not be notified", actor=ref._short_path, watcher=watcher,
                  exc_info=error)


cdef void cancel_timers(ActorRef ref) noexcept:
    cdef TimersOfActor timers = ref.extra.timers
    if timers is None or not timers.all:
        return
    begun, timers.all = timers.all, None
    for timer in snapshot(begun):
        timer.cancel()


cdef list snapshot(object timers):
    while True:
        try:
            return list(timers)
        except RuntimeError:
            pass  # one was over in the middle, and left: the timers' thread holds them


# --- resources -----------------------------------------------------------------------------------------


cdef class OwnedResource:
    """Something that belongs to an actor, and ends with it, such as an end of a channel."""

    def _forbid(self):
        """Make every further use an error: the actor is a copy in a forked process."""

    cdef int belong_to(self, ActorRef ref) except -1:
        """Take part in the spawn of the actor, as one of its arguments. Raises an error if it has another owner."""
        return 0

    cdef void part(self) noexcept:
        """The spawn has failed: this is free again."""
        pass

    cdef void let_go(self, object failure) noexcept:
        """The actor has ended, by `failure` if that is not None. Runs in its last dispatch."""
        pass

    def _figures(self):
        """Return its figures for statistics, or None. In any thread."""
        return None


# --- deferred answers: the actor returned a future that only it will complete -------------------------


def _settle(dict deferred, Team team, Future promise, Future asked):
    """Note that an ask that was deferred to a future of its actor's own has its answer."""
    promise.detach(asked)
    if deferred.pop(asked, None) is not None:
        team.add_waiting(-1)


cdef int defer_to_own(ActorRef ref, Future asked, Future promise) except -1:
    """Note that only `ref` can answer: it returned a future that no other actor completes."""
    cdef Extra extra = ref.extras()
    if promise.flag.is_set():
        return 0
    if extra.deferred is None:
        extra.deferred = {}
    assert holds(asked not in extra.deferred)
    extra.deferred[asked] = promise
    ref.runtime.team.add_waiting(1)
    asked.add_done_callback(partial(_settle, extra.deferred, ref.runtime.team, promise))
    return 0


cdef void fail_deferred(ActorRef ref, object error) noexcept:
    """Fail the answers of an object that no longer exists."""
    for asked in list(ref.extra.deferred):
        (<Future>asked).complete(None, error)
