"""An actor's failures: how they are reported, and its supervisor's decision."""

cimport cython
from cpython.object cimport PyObject

from callboard._inside.answers.future cimport Future
from callboard._inside.life.ending cimport begin_restart, begin_stop, note_left
from callboard._inside.sending.ref cimport CLOSED, FRESH, LIVE, STOPPING, ActorRef
from callboard._inside.sending.state cimport Watches
from callboard._inside.sending.stored_envelope cimport (
    CANCELLED, FAILED, START, StoredEnvelope, copy_of, dead_letter_and_go_on, stopped,
)
from callboard._inside.sending.system_kind cimport SystemKind
from callboard.core.asserting cimport holds

from asyncio import CancelledError

from callboard.core.log import log
from callboard.core.tracebacks import from_users_code


cdef void fail_in_work(ActorRef ref, object error, Envelope* envelope) noexcept:
    """The message in work raised `error`. If it was put aside, it is not lost: it will be handled again."""
    if envelope.message == <PyObject*>START and not ref.starting:
        note_left(ref, error)
    elif envelope.message == <PyObject*>START:
        ref.starting = False
        ref.phase = FRESH
        fail_start(ref, error)
    elif is_end_of_cancelled(error, envelope):
        dead_letter_and_go_on(ref, ref.runtime, copy_of(envelope), CANCELLED, error)
    elif not ref.recipe.runs and is_expected(ref, error):
        refuse(ref, error, envelope)
    elif envelope.stashed:
        fail(ref, error, <object>envelope.message)
    else:
        fail_message(ref, error, copy_of(envelope))


cdef bint is_end_of_cancelled(object error, Envelope* envelope) noexcept:
    """Tell whether the message in work ends so because its asker has cancelled it."""
    return (
        envelope.reply_to != NULL and not envelope.stashed and isinstance(error, CancelledError)
        and (<Future>envelope.reply_to).was_withdrawn()
    )


cdef bint is_expected(ActorRef ref, object error) noexcept:
    """Tell whether the actor refuses a message by `error`, and has not failed."""
    try:
        return ref.recipe.supervision._expects(error)
    except BaseException:  # the metaclass of the user's exception raised
        return False


cdef void refuse(ActorRef ref, object error, Envelope* envelope) noexcept:
    """Answer an ask with the error that was expected. The actor goes on."""
    from_users_code(error)
    if envelope.reply_to != NULL and not envelope.stashed:
        (<Future>envelope.reply_to).complete(None, error)
    else:
        log.debug("actor refused a message", actor=ref._short_path, error=error)


cdef void fail_message(ActorRef ref, object error, StoredEnvelope stored) noexcept:
    """Handling a message raised `error`: it is a dead letter, and the asker gets the error."""
    from_users_code(error)
    dead_letter_and_go_on(ref, ref.runtime, stored, FAILED, error)
    fail(ref, error, stored.message)


cdef void fail_start(ActorRef ref, object error) noexcept:
    """Let the supervisor decide. If the actor ends, the futures of its start have the error itself."""
    cdef Watches watches = ref.extra.watches if ref.extra is not None else None
    cdef list futures = None
    if watches is not None:
        futures, watches.starts = watches.starts, None
    fail(ref, error, None)
    if futures is None:
        return
    if ref.phase < STOPPING:
        ref.extras().watches_now().starts = futures  # it restarts
        return
    for future in futures:
        end = stopped(ref, ref.runtime)
        end.__cause__ = error
        (<Future>future).complete(None, end)


cdef void fail(ActorRef ref, object error, object message) noexcept:
    """The actor raised `error`: tell everyone concerned, and let the supervisor decide.

    `message` is what it was handling, or None. It is a dead letter already, or was put aside.
    """
    cdef bint begun = ref.phase != FRESH and not ref.starting
    try:
        from_users_code(error)
        log.error("actor failed", actor=ref._short_path, error=error, exc_info=error)
        ref.runtime.dead_letters.note_failure(ref, error)
        if ref.recipe.fails and ref.instance is not None:
            try:
                ref.instance.on_failure(error, message)
            except BaseException as another:
                log.error("on_failure failed", actor=ref._short_path, exc_info=another)
        decide(ref, error, begun)
    except BaseException as another:
        log.error("a supervisor failed; its actor stops", actor=ref._short_path, exc_info=another)
        ref.runtime.dead_letters.note_fatal(ref, error, begun=begun)
        begin_stop(ref)


cdef int decide(ActorRef ref, object error, bint begun) except -1:
    cdef ActorRef other, parent
    directive = ref.recipe.supervision._decide(error)
    if directive == "resume" and (ref.phase == FRESH or ref.phase == LIVE and ref.recipe.runs):
        directive = "stop"  # there is no object that could go on, or it is a task whose run() has ended
    if directive == "stop" or directive == "escalate":
        # An escalation counts for a top-level actor only: the others' parents fail next.
        counts = directive == "stop" or ref.parent is None
        ref.runtime.dead_letters.note_fatal(ref, error, begun=begun, counts=counts)
    assert holds(directive in ("resume", "restart", "stop", "escalate"))
    for other in others_in_scope(ref):
        if directive == "restart":
            other.send_system(SystemKind.restart, error, None)
        elif directive == "stop":
            ref.runtime.dead_letters.note_end_with(other, ref)
            other.send_system(SystemKind.stop, None, None)
    if directive == "restart":
        begin_restart(ref, error)
    elif directive == "escalate":
        parent = <ActorRef>ref.parent
        runtime = ref.runtime
        begin_stop(ref)
        if parent is not None:
            parent.send_system(SystemKind.failed, ref, error)
        else:
            with cython.critical_section(runtime):  # others may read it, or set it at once
                runtime.failure = error
            runtime.tell_change()
    elif directive == "stop":
        begin_stop(ref)
    return 0


cdef list others_in_scope(ActorRef ref):
    """The siblings that share `ref`'s fate: all, or those spawned after it."""
    scope = ref.recipe.supervision.scope
    if scope == "one" or ref.phase == CLOSED:  # what a child escalates may come after its parent's end
        return []
    siblings = list(ref.parent.children_of if ref.parent is not None else ref.runtime.children)
    assert holds(ref in siblings)
    if scope == "rest":
        siblings = siblings[siblings.index(ref):]
    return [other for other in siblings if other is not ref]
