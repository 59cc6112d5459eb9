"""`async def receive`: an actor that waits in the middle of a message.

Its coroutine is LPEL's task with a stack of its own (Prokesch 2011, section 4.3): the worker drives
it until it awaits a future that is not done, then leaves it and runs others; the future's completion
sends a system message that makes the actor ready again.
"""

cimport cython

from callboard._inside.receiving.answering cimport answer_with, circle
from callboard._inside.receiving.errand cimport make_errand
from callboard._inside.answers.future cimport Future, Wake
from callboard._inside.life.lifecycle cimport fail, fail_message
from callboard._inside.sending.ref cimport LIVE, SUSPENDED, ActorRef, Extra
from callboard.core.node cimport Kind
from callboard.scheduling.cell cimport Context

from callboard.core.errors import ActorStopped
from callboard.core.log import log
from callboard.core.text import safe_repr

# How the errors begin that asyncio raises where no event loop runs.
cdef tuple NO_LOOP = ("no running event loop", "There is no current event loop")


cdef class _Resume(Wake):
    """Makes a suspended actor ready when what it awaits is done."""

    cdef ActorRef ref

    cdef void wake(self, Future future) noexcept:
        self.ref.signal(Kind.resume, future, None)


cdef void begin(ActorRef ref, object coroutine, object message, object second, bint asked,
                Context* context) noexcept:
    """Drive a handler's coroutine from its start."""
    cdef Extra extra = ref.extras()
    if ref.recipe.event_loop:
        coroutine = extra.errand = make_errand(ref, coroutine)
    extra.coroutine = coroutine
    extra.message = message
    extra.sender = second
    extra.asked = asked
    extra.put_aside = ref.cell.message == NULL
    ref.phase = SUSPENDED
    drive(ref, None, context)
    if ref.phase == SUSPENDED:
        ref.runtime.team.add_waiting(1)
        extra.detached = True


cdef void resume(ActorRef ref, Context* context) noexcept:
    """What the coroutine awaited is done."""
    drive(ref, None, context)


cdef void drive(ActorRef ref, object error, Context* context) noexcept:
    """Run the coroutine until it ends or must wait. With an `error`, raise that in it first."""
    cdef Extra extra = ref.extra
    coroutine = extra.coroutine
    ref.cell.message = <void*>extra.message if not extra.put_aside else NULL
    ref.cell.sender = <void*>extra.sender if extra.sender is not None else NULL
    ref.cell.asked = extra.asked
    try:
        while True:
            set_awaited(extra, None)
            try:
                awaited = coroutine.send(None) if error is None else coroutine.throw(error)
            except StopIteration as end:
                finish(ref, extra, end.value)
                return
            error = obstacle(ref, awaited)
            if error is None:
                wake = _Resume.__new__(_Resume)
                (<_Resume>wake).ref = ref
                extra.put_aside = ref.cell.message == NULL
                awaited.add_done_callback(wake)
                return
    except BaseException as raised:
        message, second, asked = extra.message, extra.sender, extra.asked
        stashed = ref.cell.message == NULL
        forget(ref, extra)
        failure = with_advice(ref, raised)
        if stashed:
            fail(ref, failure, message)
        else:
            fail_message(ref, failure, message, second, asked)
    finally:
        ref.cell.message = NULL
        ref.cell.sender = NULL


cdef object obstacle(ActorRef ref, object awaited):
    """Note what the actor awaits. The error to raise in the coroutine, if it cannot wait for that."""
    cdef Extra extra = ref.extra
    if not isinstance(awaited, Future):
        return TypeError(
            f"{ref.path} awaits {safe_repr(awaited)}: an actor can await callboard's futures "
            "(of ask() and sleep()), and those of asyncio if it was spawned with event_loop=True"
        )
    set_awaited(extra, awaited)  # before the look around: of two that close a cycle one must see it
    error = circle(ref, None, <Future>awaited)
    if error is not None:
        set_awaited(extra, None)
    return error


cdef object with_advice(ActorRef ref, object raised):
    """What asyncio says where there is no loop, with what to do about it."""
    if type(raised) is RuntimeError and str(raised).startswith(NO_LOOP):
        advice = RuntimeError(
            f"{raised}: {ref.path} uses asyncio, and must be spawned with event_loop=True for that")
        return advice.with_traceback(raised.__traceback__)
    return raised


cdef inline void set_awaited(Extra extra, object awaited) noexcept:
    with cython.critical_section(extra):  # others look for cycles; see ActorRef.awaited()
        extra.awaited = awaited


cdef int finish(ActorRef ref, Extra extra, object answer) except -1:
    asked = extra.asked and ref.cell.message != NULL
    message, future = extra.message, extra.sender
    forget(ref, extra)
    if asked:
        error = answer_with(ref, <Future>future, answer)
        if error is not None:
            fail_message(ref, error, message, future, True)
    return 0


cdef void forget(ActorRef ref, Extra extra) noexcept:
    """The coroutine is over: the actor handles messages again."""
    set_awaited(extra, None)
    extra.coroutine = extra.message = extra.sender = None
    ref.phase = LIVE
    if extra.detached:
        extra.detached = False
        ref.runtime.team.add_waiting(-1)


cdef void close_coroutine(ActorRef ref, object error) noexcept:
    """End a coroutine in the middle, because the actor stops (an ActorStopped) or restarts. Its
    message becomes a dead letter, unless it was stashed; an ask gets `error`."""
    cdef Extra extra = ref.extra
    if extra is None or extra.coroutine is None:
        return
    coroutine, message, second, asked = extra.coroutine, extra.message, extra.sender, extra.asked
    stashed = extra.put_aside
    forget(ref, extra)
    try:
        coroutine.close()
    except BaseException as raised:
        log.error("a coroutine that was closed failed", actor=ref.path, exc_info=raised)
    if stashed:
        return
    reason = "stopped" if isinstance(error, ActorStopped) else "failed"
    ref.post_dead(message, second, asked, reason, error, error)
