"""`async def receive`: an actor that waits in the middle of a message.

Its coroutine is LPEL's task with a stack of its own (Prokesch 2011, section 4.3): the worker drives it until it
awaits a future that is not done, then leaves it and runs others. The future's completion sends a system message
that makes the actor ready again.
"""

from asyncio import CancelledError

from callboard._inside.answers.checkpoint cimport Checkpoint
from callboard._inside.answers.circles cimport circle
from callboard._inside.answers.future cimport Future
from callboard._inside.life.failure cimport fail_in_work
from callboard._inside.life.suspended cimport end_suspension, set_awaited
from callboard._inside.receiving.concurrent cimport begin_flight
from callboard._inside.receiving.errand cimport make_errand
from callboard._inside.receiving.finishing cimport finish, with_advice
from callboard._inside.sending.actor_cell cimport cell_of
from callboard._inside.sending.envelope cimport Envelope, to_tell
from callboard._inside.sending.letter cimport RUN, START, Letter, copy_of
from callboard._inside.sending.ref cimport LIVE, RESTARTING, SUSPENDED, ActorRef, Extra

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF

from callboard.core.asserting cimport holds
from callboard.core.awaitable cimport PYGEN_ERROR, PYGEN_NEXT, PYGEN_RETURN, PyIter_Send, PySendResult, reraise

from callboard.core.text import safe_repr

cdef extern from "Python.h":
    int PyCoro_CheckExact(PyObject* object)


cdef void begin(ActorRef ref, object coroutine, Envelope* envelope) noexcept:
    """Drive a handler's coroutine from its start."""
    cdef Extra extra = ref.extras()
    assert holds(ref.phase == LIVE and extra.coroutine is None and extra.awaited is None and extra.letter is None)
    if ref.recipe.apart:
        if ref.recipe.concurrency > 1 and not ref.starting:
            begin_flight(ref, coroutine, envelope)
            return
        if ref.recipe.event_loop:
            coroutine = extra.errand = make_errand(ref, coroutine)
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
            raise TypeError(f"{ref._short_path}: run() returned {safe_repr(coroutine)}, and is to be `async def`")
    except BaseException as error:
        fail_in_work(ref, error, &envelope)
    else:
        begin(ref, coroutine, &envelope)
    cell_of(ref).in_work = NULL


cdef void begin_start(ActorRef ref, object coroutine) noexcept:
    """Drive `async def on_start`, as if it handled a message: it is none that could be lost, or put aside."""
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
        extra.coroutine = extra.errand = make_errand(ref, extra.leaving)
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
    assert holds(ref.extra.errand is None)
    assert holds(type(ref.extra.awaited) is Checkpoint or (<Future>ref.extra.awaited).flag.is_set())
    go_on(ref, None)


cdef void interrupt(ActorRef ref) noexcept:
    """Raise CancelledError where the coroutine waits: the asker has cancelled the ask that it handles."""
    cdef Future awaited = ref.extra.awaited
    assert holds(ref.phase == SUSPENDED and ref.extra.errand is None)
    ref.extra.yields = False
    if awaited.asker is ref or awaited.target is None:
        awaited.abandon(ref)
    else:
        awaited.detach(ref)
    go_on(ref, CancelledError("the asker has cancelled the ask"))


cdef void go_on(ActorRef ref, object error) noexcept:
    """Let the coroutine run on, with an exception if there is one."""
    cdef Letter letter = ref.extra.letter
    cdef Envelope envelope = letter.lend()
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
                if extra.letter is None:  # it waits for the first time
                    extra.letter = copy_of(envelope)
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
        return None  # nobody was asked
    error = circle(ref, None, <Future>awaited)
    if error is not None:
        set_awaited(extra, None)
    return error
