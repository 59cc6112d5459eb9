"""`async def receive`: an actor that waits in the middle of a message, or of several.

Its coroutine is LPEL's task with its own stack (Prokesch 2011, section 4.3): the worker drives it until it
awaits a future that is not done, then leaves it and runs others. The future's completion sends a system message
that makes the actor ready again.
"""

from asyncio import CancelledError
from functools import partial

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.pending_asks cimport circle, lengthen
from callboard._inside.life.ending cimport begin_stop, defer_to_own, end_after_concurrent, note_left
from callboard._inside.life.failure cimport fail_in_work, fail_message
from callboard._inside.life.start cimport note_started
from callboard._inside.life.unfinished cimport (
    Checkpoint, ConcurrentMessage, StepLock, add_concurrent, end_concurrent, end_suspension, lose, set_awaited,
)
from callboard._inside.receiving.loop_task cimport LoopTask, make_loop_task
from callboard._inside.sending.actor_cell cimport adopting_cell, cell_of
from callboard._inside.sending.envelope cimport Envelope, to_tell
from callboard._inside.sending.ref cimport LIVE, RESTARTING, SUSPENDED, ActorRef, Extra
from callboard._inside.sending.state cimport Concurrency
from callboard._inside.sending.stored_envelope cimport RUN, START, StoredEnvelope, copy_of, stopped
from callboard._inside.sending.system_kind cimport SystemKind
from callboard._inside.sending.variables cimport current_variables, kept, replace
from callboard.core.asserting cimport holds
from callboard.core.awaitable cimport PYGEN_ERROR, PYGEN_NEXT, PYGEN_RETURN, PyIter_Send, PySendResult, reraise
from callboard.core.thread_state cimport PyThreadState, set_variables
from callboard.scheduling.context cimport Context, current_context

from callboard._inside.answers.foreign import future_of
from callboard.core.errors import AskDeadlock
from callboard.core.text import safe_repr, safe_str


cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        unsigned long tp_flags
        void* tp_as_async
    const unsigned long HEAPTYPE "Py_TPFLAGS_HEAPTYPE"
    PyTypeObject* Py_TYPE(PyObject* value)
    object PyContext_New()
    int PyCoro_CheckExact(PyObject* object)


# --- the end of a handler, or of its coroutine, and the answer ----------------------------------------
#
# An answer may be a future: the ask is deferred to it then.


# How the errors begin that asyncio raises where no event loop runs.
cdef tuple NO_LOOP = ("no running event loop", "There is no current event loop")


cdef object with_advice(ActorRef ref, object raised):
    """Add advice to asyncio's error that there is no loop."""
    if type(raised) is RuntimeError and safe_str(raised).startswith(NO_LOOP):
        advice = RuntimeError(
            f"{raised}: {ref._short_path} uses asyncio, and must be spawned with event_loop=True for that")
        return advice.with_traceback(raised.__traceback__)
    return raised


cdef void finish(ActorRef ref, Envelope* envelope, object answer) noexcept:
    """The handler, or its coroutine, returned `answer`. A task has done its work."""
    if envelope.message == <PyObject*>RUN:
        assert holds(ref.recipe.runs)
        begin_stop(ref)
        return
    if envelope.message == <PyObject*>START:
        if ref.starting:
            note_started(ref)
        else:
            note_left(ref, None)
        return
    if envelope.reply_to != NULL and not envelope.stashed:
        error = answer_with(ref, <Future>envelope.reply_to, answer)
        if error is not None:
            fail_message(ref, error, copy_of(envelope))


cdef inline bint may_be_foreign(PyObject* value) noexcept:
    """Tell quickly that most values are not futures of asyncio or concurrent.futures."""
    cdef PyTypeObject* kind = Py_TYPE(value)
    return kind.tp_flags & HEAPTYPE or kind.tp_as_async != NULL


cdef object answer_with(ActorRef ref, Future asked, object value):
    """Answer an ask. Return None, or the AskDeadlock that the answer would close: the ask is still open."""
    cdef Future other
    cdef object error
    cdef object answer = value
    if not isinstance(answer, Future):
        answer = future_of(answer) if may_be_foreign(<PyObject*>answer) else None
    if answer is None:
        asked.complete(value, None)
        return None
    other = <Future>answer
    with cython.critical_section(asked):
        done = asked.flag.is_set()
        if not done:
            asked.deferred_to = other
    if done:
        if isinstance(asked.error, AskDeadlock):  # it was void before its handler came to its end
            other.complete(None, asked.error)
        return None
    error = circle(ref, asked, other)
    if error is None:
        if other.target is None:
            defer_to_own(ref, asked, other)
        if not other.attach(asked):
            asked.complete(other.value, other.error)
            return None
        error = lengthen(asked, other)
        if error is None:
            return None
        other.detach(asked)
    with cython.critical_section(asked):
        asked.deferred_to = None
    return error


# --- several messages at a time: an actor with `concurrency` -------------------------------------------
#
# A worker drives each message as it drives the only one of other actors, or the event loop runs it as a task of its
# own. In both cases one thread at a time runs the actor's code: see StepLock.
#
# The actors that such an actor asks, and those that ask it, are not looked through for circles: it waits for many
# things at one time.


cdef void begin_concurrent(ActorRef ref, object coroutine, Envelope* envelope) noexcept:
    """Begin a message; it may go on after this dispatch, beside others."""
    cdef ConcurrentMessage message = ConcurrentMessage.__new__(ConcurrentMessage)
    cdef Context* context = current_context()
    cdef bint carries = cell_of(ref).has(adopting_cell)
    message.ref = ref
    message.stored = copy_of(envelope)
    message.stashed = envelope.stashed
    message.coroutine = coroutine
    add_concurrent(message)
    if ref.recipe.event_loop:
        begin_on_loop(message, kept(context) if carries else current_variables())
        if carries:
            replace(context, NULL)
        return
    if carries:
        take_variables(message, set_variables(<PyThreadState*>context.python, NULL))
    else:
        message.variables = current_variables()
    drive_concurrent(message, envelope, None)


cdef void begin_on_loop(ConcurrentMessage message, object variables) noexcept:
    """Leave the coroutine to the event loop, which is told of it at the end of the dispatch."""
    cdef LoopTask loop_task
    if variables is None:
        variables = PyContext_New()
    loop_task = make_loop_task(message.ref, message.coroutine, variables)
    loop_task.message = message
    loop_task.step_lock = <StepLock>message.ref.extra.concurrency.step_lock
    loop_task.envelope = message.stored.lend()
    loop_task.envelope.stashed = message.stashed
    loop_task.launched = True
    message.loop_task = loop_task
    message.awaited = loop_task.outcome
    (<Future>loop_task.outcome).attach(message)
    loop_task.step_lock.begun.append(loop_task)
    loop_task.step_lock.unbegun[message] = None


cdef void launch_begun(ActorRef ref, list begun) noexcept:
    """Tell the event loop of the loop tasks that a dispatch leaves to it."""
    cdef LoopTask loop_task
    try:
        ref.runtime.event_loop.call(partial(_begin_all, begun))
    except BaseException as error:
        for loop_task in begun:
            loop_task.coroutine.close()
            loop_task.end(None, error)


def _begin_all(list begun):
    cdef LoopTask loop_task
    for loop_task in begun:
        loop_task.begin()


cdef bint interrupt_concurrent(ConcurrentMessage message, Future asked) noexcept:
    """End the work on an ask, which its asker has cancelled. False: the message is another one."""
    cdef Future awaited = <Future>message.awaited
    cdef ActorRef ref = message.ref
    if message.stored.reply_to is not asked:
        return False
    if message.loop_task is not None:
        if not (<LoopTask>message.loop_task).is_of(asked):
            return False
        (<LoopTask>message.loop_task).withdraw()
        return True
    if message.stashed:
        return False
    if awaited.asker is ref or awaited.target is None:
        awaited.abandon(message)
    else:
        awaited.detach(message)
    go_on_concurrent(message, CancelledError("the asker has cancelled the ask"))
    return True


cdef void resume_concurrent(ConcurrentMessage message) noexcept:
    """Go on with a concurrent message: the future that it awaited is done."""
    go_on_concurrent(message, None)


cdef void go_on_concurrent(ConcurrentMessage message, object error) noexcept:
    """Let the coroutine run on, with an exception if there is one."""
    cdef Envelope envelope = message.stored.lend()
    cdef ActorRef ref = message.ref
    cdef Concurrency concurrency = ref.extra.concurrency
    assert holds(cell_of(ref).in_work == NULL)
    envelope.stashed = message.stashed
    cell_of(ref).in_work = &envelope
    if message.loop_task is not None:
        end_on_loop(message, <LoopTask>message.loop_task, &envelope)
    else:
        drive_concurrent(message, &envelope, error)
    cell_of(ref).in_work = NULL
    if concurrency.ends and not concurrency.messages:
        end_after_concurrent(ref)


cdef void end_on_loop(ConcurrentMessage message, LoopTask loop_task, Envelope* envelope) noexcept:
    """The event loop is done with the message."""
    cdef ActorRef ref = message.ref
    cdef Future outcome = <Future>loop_task.outcome
    cdef object error = outcome.error
    assert holds(loop_task.over and outcome.flag.is_set())
    envelope.stashed = message.stashed = loop_task.envelope.stashed
    if loop_task.was_cancelled():
        by = ref.extra.concurrency.ends_by
        lose(message, by if by is not None else stopped(ref, ref.runtime, "; it was in the middle of the ask"))
        return
    end_concurrent(message)
    if error is None:
        finish(ref, envelope, outcome.value)
    else:
        fail_in_work(ref, with_advice(ref, error), envelope)


cdef void drive_concurrent(ConcurrentMessage message, Envelope* envelope, object error) noexcept:
    """Run the coroutine on this worker until it ends or must wait."""
    cdef ActorRef ref = message.ref
    cdef PyThreadState* thread = <PyThreadState*>current_context().python
    cdef object raised = None
    cdef object answer = None
    cdef bint is_over = False
    cdef PyObject* outer
    coroutine = message.coroutine
    message.awaited = None
    outer = set_variables(thread, hand_variables(message))
    try:
        while True:
            try:
                awaited = coroutine.send(None) if error is None else coroutine.throw(error)
            except StopIteration as end:
                answer, error = end.value, None
                if PyCoro_CheckExact(<PyObject*>answer):  # it is to be awaited, too
                    coroutine = message.coroutine = answer
                    continue
                is_over = True
                break
            if isinstance(awaited, Future):
                break
            error = TypeError(
                f"{ref._short_path} awaits {safe_repr(awaited)}: an actor can await callboard's futures "
                "(of ask() and sleep()), and those of asyncio if it was spawned with event_loop=True")
    except BaseException as other:
        raised = other
        is_over = True
    take_variables(message, set_variables(thread, outer))
    message.stashed = envelope.stashed
    if is_over:
        message.variables = None
        end_concurrent(message)
        if raised is None:
            finish(ref, envelope, answer)
        else:
            fail_in_work(ref, with_advice(ref, raised), envelope)
        return
    message.awaited = awaited
    message.count(not (<Future>awaited).is_rest)
    if type(awaited) is Checkpoint:
        ref.extra.concurrency.lets_others_run = True
        ref.send_system(SystemKind.resume, awaited, message)
    elif not (<Future>awaited).attach(message):
        message.wake(<Future>awaited)


cdef PyObject* hand_variables(ConcurrentMessage message) noexcept:
    """Return the context of a concurrent message, which no longer has it, with its reference, or null."""
    if message.variables is None:
        return NULL
    variables = message.variables
    Py_INCREF(variables)
    message.variables = None
    return <PyObject*>variables


cdef void take_variables(ConcurrentMessage message, PyObject* variables) noexcept:
    """Let a concurrent message take over a context, with its reference, or null."""
    if variables != NULL:
        message.variables = <object>variables
        Py_DECREF(message.variables)


# --- one message at a time -----------------------------------------------------------------------------


cdef void begin(ActorRef ref, object coroutine, Envelope* envelope) noexcept:
    """Drive a handler's coroutine from its start."""
    cdef Extra extra = ref.extras()
    assert holds(ref.phase == LIVE and extra.coroutine is None and extra.awaited is None and extra.stored is None)
    if ref.recipe.has_async_options:
        if ref.recipe.concurrency > 1 and not ref.starting:
            begin_concurrent(ref, coroutine, envelope)
            return
        if ref.recipe.event_loop:
            coroutine = extra.loop_task = make_loop_task(ref, coroutine)
    extra.coroutine = coroutine
    ref.phase = SUSPENDED
    drive(ref, envelope, None)
    note_unrest(ref)


cdef void begin_task(ActorRef ref) noexcept:
    """Drive run() of a new task, as if it handled its only message."""
    cdef Envelope envelope = to_tell(<PyObject*>RUN, NULL)
    cell_of(ref).in_work = &envelope
    try:
        coroutine = ref.instance.run()
        if not PyCoro_CheckExact(<PyObject*>coroutine):
            raise TypeError(f"{ref._short_path}: run() returned {safe_repr(coroutine)}, but must be `async def`")
    except BaseException as error:
        fail_in_work(ref, error, &envelope)
    else:
        begin(ref, coroutine, &envelope)
    cell_of(ref).in_work = NULL


cdef void begin_start(ActorRef ref, object coroutine) noexcept:
    """Drive `async def on_start`, as if it handled a message, but one that cannot be lost or put aside."""
    cdef Envelope envelope = to_tell(<PyObject*>START, NULL)
    envelope.stashed = True
    ref.starting = True
    cell_of(ref).in_work = &envelope
    begin(ref, coroutine, &envelope)
    cell_of(ref).in_work = NULL


cdef void begin_leaving(ActorRef ref) noexcept:
    """Drive `async def on_stop`, as begin_start() does `on_start`. The actor's phase stays as it is."""
    cdef Extra extra = ref.extra
    cdef Envelope envelope = to_tell(<PyObject*>START, NULL)
    assert holds(ref.phase >= RESTARTING and extra.coroutine is None and cell_of(ref).in_work == NULL)
    envelope.stashed = True
    extra.coroutine = extra.leaving
    if ref.recipe.event_loop:
        extra.coroutine = extra.loop_task = make_loop_task(ref, extra.leaving)
    cell_of(ref).in_work = &envelope
    drive(ref, &envelope, None)
    cell_of(ref).in_work = NULL
    note_unrest(ref)


cdef void note_unrest(ActorRef ref) noexcept:
    """Count the actor among those that keep the system from idleness, as long as it waits for no input."""
    cdef Extra extra = ref.extra
    cdef bint unrest
    if ref.phase != SUSPENDED and (extra is None or extra.coroutine is None):
        assert holds(extra is None or not extra.detached)  # it is counted as long as it is suspended
        return
    unrest = extra.awaited is None or not (<Future>extra.awaited).is_rest
    if unrest != extra.detached:
        extra.detached = unrest
        ref.runtime.team.add_waiting(1 if unrest else -1)


cdef void resume(ActorRef ref) noexcept:
    """Go on with the coroutine: the future that it awaited is done."""
    assert holds(ref.extra.loop_task is None)
    assert holds(type(ref.extra.awaited) is Checkpoint or (<Future>ref.extra.awaited).flag.is_set())
    go_on(ref, None)


cdef void interrupt(ActorRef ref) noexcept:
    """Raise CancelledError where the coroutine waits: the asker has cancelled the ask that it handles."""
    cdef Future awaited = ref.extra.awaited
    assert holds(ref.phase == SUSPENDED and ref.extra.loop_task is None)
    ref.extra.yields = False
    if awaited.asker is ref or awaited.target is None:
        awaited.abandon(ref)
    else:
        awaited.detach(ref)
    go_on(ref, CancelledError("the asker has cancelled the ask"))


cdef void go_on(ActorRef ref, object error) noexcept:
    """Let the coroutine run on, with an exception if there is one."""
    cdef StoredEnvelope stored = ref.extra.stored
    cdef Envelope envelope = stored.lend()
    assert holds(cell_of(ref).in_work == NULL)
    envelope.stashed = ref.extra.stashed
    cell_of(ref).in_work = &envelope
    drive(ref, &envelope, error)
    cell_of(ref).in_work = NULL
    note_unrest(ref)


cdef void drive(ActorRef ref, Envelope* envelope, object error) noexcept:
    """Run the coroutine until it ends or must wait; from where `error` is raised, if that is not None."""
    cdef Extra extra = ref.extra
    cdef PySendResult status
    cdef PyObject* result = NULL
    coroutine = extra.coroutine
    assert holds(ref.phase == SUSPENDED or extra.leaving is not None)
    assert holds(coroutine is not None and cell_of(ref).in_work == envelope)
    try:
        while True:
            set_awaited(extra, None)
            if error is None and PyCoro_CheckExact(<PyObject*>coroutine):
                status = PyIter_Send(<PyObject*>coroutine, <PyObject*>None, &result)
                if status == PYGEN_ERROR:
                    reraise()
                awaited = <object>result
                Py_DECREF(awaited)
            else:
                try:
                    awaited = coroutine.send(None) if error is None else coroutine.throw(error)
                    status = PYGEN_NEXT
                except StopIteration as end:
                    awaited = end.value
                    status = PYGEN_RETURN
            if status == PYGEN_RETURN:
                if PyCoro_CheckExact(<PyObject*>awaited):  # its answer is to be awaited, too
                    coroutine = extra.coroutine = awaited
                    continue
                end_suspension(ref)
                finish(ref, envelope, awaited)
                return
            error = obstacle(ref, awaited)
            if error is None:
                if extra.stored is None:  # it waits for the first time
                    extra.stored = copy_of(envelope)
                extra.stashed = envelope.stashed
                if type(awaited) is Checkpoint:
                    extra.yields = True
                elif not (<Future>awaited).attach(ref):
                    ref.resume(<Future>awaited)
                return
    except BaseException as raised:
        end_suspension(ref)
        fail_in_work(ref, with_advice(ref, raised), envelope)


cdef object obstacle(ActorRef ref, object awaited):
    """Note what the actor awaits. Return the error to raise in the coroutine if it cannot wait for that."""
    cdef Extra extra = ref.extra
    if not isinstance(awaited, Future):
        return TypeError(
            f"{ref._short_path} awaits {safe_repr(awaited)}: an actor can await callboard's futures "
            "(of ask() and sleep()), and those of asyncio if it was spawned with event_loop=True"
        )
    set_awaited(extra, awaited)  # before the look around: of two that close a cycle one must see it
    if (<Future>awaited).target is None and (<Future>awaited).deferred_to is None:
        return None  # no actor was asked
    error = circle(ref, None, <Future>awaited)
    if error is not None:
        set_awaited(extra, None)
    return error
