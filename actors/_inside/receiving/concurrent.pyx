"""`async def receive` of an actor that was spawned with `concurrency`: several messages in the middle at one time.

Each message is a flight. A worker drives a flight as coroutine.pyx drives the only one of other actors, or the event
loop runs it as a task of its own. In both cases one thread at a time runs the actor's code: see access.pyx.

The actors that such an actor asks, and those that ask it, are not looked through for circles: it waits for many
things at one time.
"""

from asyncio import CancelledError
from functools import partial

from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF

from callboard._inside.answers.checkpoint cimport Checkpoint
from callboard._inside.answers.future cimport Future
from callboard._inside.life.access cimport Access
from callboard._inside.life.ending cimport end_after_flights
from callboard._inside.life.failure cimport fail_in_work
from callboard._inside.life.flights cimport ConcurrentMessage, add_flight, end_flight, lose
from callboard._inside.receiving.errand cimport Errand, make_errand
from callboard._inside.receiving.finishing cimport finish, with_advice
from callboard._inside.sending.actor_cell cimport wearing_cell, cell_of
from callboard._inside.sending.dead_lettering cimport stopped
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.letter cimport copy_of
from callboard._inside.sending.ref cimport ActorRef, Extra
from callboard._inside.sending.system_kind cimport SystemKind
from callboard._inside.sending.variables cimport current_variables, kept, replace
from callboard.core.asserting cimport holds
from callboard.core.thread_state cimport PyThreadState, set_variables
from callboard.scheduling.context cimport Context, current_context

from callboard.core.text import safe_repr

cdef extern from "Python.h":
    object PyContext_New()
    int PyCoro_CheckExact(PyObject* object)


cdef void begin_flight(ActorRef ref, object coroutine, Envelope* envelope) noexcept:
    """Begin a message; it may go on after this dispatch, beside others."""
    cdef ConcurrentMessage flight = ConcurrentMessage.__new__(ConcurrentMessage)
    cdef Context* context = current_context()
    cdef bint carries = cell_of(ref).has(wearing_cell)
    flight.ref = ref
    flight.letter = copy_of(envelope)
    flight.stashed = envelope.stashed
    flight.coroutine = coroutine
    add_flight(flight)
    if ref.recipe.event_loop:
        begin_apart(flight, kept(context) if carries else current_variables())
        if carries:
            replace(context, NULL)
        return
    if carries:
        take_variables(flight, set_variables(<PyThreadState*>context.python, NULL))
    else:
        flight.variables = current_variables()
    drive_flight(flight, envelope, None)


cdef void begin_apart(ConcurrentMessage flight, object variables) noexcept:
    """Leave the coroutine to the event loop, which hears of it at the end of the dispatch."""
    cdef Errand errand
    if variables is None:
        variables = PyContext_New()
    errand = make_errand(flight.ref, flight.coroutine, variables)
    errand.flight = flight
    errand.access = <Access>flight.ref.extra.access
    errand.envelope = flight.letter.lend()
    errand.envelope.stashed = flight.stashed
    errand.launched = True
    flight.errand = errand
    flight.awaited = errand.outcome
    (<Future>errand.outcome).attach(flight)
    errand.access.begun.append(errand)
    errand.access.unbegun[flight] = None


cdef void launch_begun(ActorRef ref, list begun) noexcept:
    """Tell the event loop of the errands that a dispatch leaves to it."""
    cdef Errand errand
    try:
        ref.runtime.event_loop.call(partial(_begin_all, begun))
    except BaseException as error:
        for errand in begun:
            errand.coroutine.close()
            errand.end(None, error)


def _begin_all(list begun):
    cdef Errand errand
    for errand in begun:
        errand.begin()


cdef bint interrupt_flight(ConcurrentMessage flight, Future asked) noexcept:
    """End the work on an ask, which its asker has cancelled. False: the message is another one."""
    cdef Future awaited = <Future>flight.awaited
    cdef ActorRef ref = flight.ref
    if flight.letter.reply_to is not asked:
        return False
    if flight.errand is not None:
        if not (<Errand>flight.errand).is_of(asked):
            return False
        (<Errand>flight.errand).withdraw()
        return True
    if flight.stashed:
        return False
    if awaited.asker is ref or awaited.target is None:
        awaited.abandon(flight)
    else:
        awaited.detach(flight)
    go_on(flight, CancelledError("the asker has cancelled the ask"))
    return True


cdef void resume_flight(ConcurrentMessage flight) noexcept:
    """Go on with a flight: the future that it awaited is done."""
    go_on(flight, None)


cdef void go_on(ConcurrentMessage flight, object error) noexcept:
    """Let the coroutine run on, with an exception if there is one."""
    cdef Envelope envelope = flight.letter.lend()
    cdef ActorRef ref = flight.ref
    cdef Extra extra = ref.extra
    assert holds(cell_of(ref).in_work == NULL)
    envelope.stashed = flight.stashed
    cell_of(ref).in_work = &envelope
    if flight.errand is not None:
        end_apart(flight, <Errand>flight.errand, &envelope)
    else:
        drive_flight(flight, &envelope, error)
    cell_of(ref).in_work = NULL
    if extra.ends and not extra.flights:
        end_after_flights(ref)


cdef void end_apart(ConcurrentMessage flight, Errand errand, Envelope* envelope) noexcept:
    """The event loop is done with the message."""
    cdef ActorRef ref = flight.ref
    cdef Future outcome = <Future>errand.outcome
    cdef object error = outcome.error
    assert holds(errand.over and outcome.flag.is_set())
    envelope.stashed = flight.stashed = errand.envelope.stashed
    if errand.was_cancelled():
        by = ref.extra.ends_by
        lose(flight, by if by is not None else stopped(ref, ref.runtime, "; it was in the middle of the ask"))
        return
    end_flight(flight)
    if error is None:
        finish(ref, envelope, outcome.value)
    else:
        fail_in_work(ref, with_advice(ref, error), envelope)


cdef void drive_flight(ConcurrentMessage flight, Envelope* envelope, object error) noexcept:
    """Run the coroutine on this worker until it ends or must wait."""
    cdef ActorRef ref = flight.ref
    cdef PyThreadState* thread = <PyThreadState*>current_context().python
    cdef object raised = None
    cdef object answer = None
    cdef bint is_over = False
    cdef PyObject* outer
    coroutine = flight.coroutine
    flight.awaited = None
    outer = set_variables(thread, hand_variables(flight))
    try:
        while True:
            try:
                awaited = coroutine.send(None) if error is None else coroutine.throw(error)
            except StopIteration as end:
                answer, error = end.value, None
                if PyCoro_CheckExact(<PyObject*>answer):  # it is to be awaited, too
                    coroutine = flight.coroutine = answer
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
    take_variables(flight, set_variables(thread, outer))
    flight.stashed = envelope.stashed
    if is_over:
        flight.variables = None
        end_flight(flight)
        if raised is None:
            finish(ref, envelope, answer)
        else:
            fail_in_work(ref, with_advice(ref, raised), envelope)
        return
    flight.awaited = awaited
    flight.count(not (<Future>awaited).is_rest)
    if type(awaited) is Checkpoint:
        ref.extra.lets_others_run = True
        ref.send_system(SystemKind.resume, awaited, flight)
    elif not (<Future>awaited).attach(flight):
        flight.wake(<Future>awaited)


cdef PyObject* hand_variables(ConcurrentMessage flight) noexcept:
    """Return the context of a flight, with a reference, or null; the flight has it no more."""
    if flight.variables is None:
        return NULL
    variables = flight.variables
    Py_INCREF(variables)
    flight.variables = None
    return <PyObject*>variables


cdef void take_variables(ConcurrentMessage flight, PyObject* variables) noexcept:
    """Let a flight have a context, which is handed over, or null."""
    if variables != NULL:
        flight.variables = <object>variables
        Py_DECREF(flight.variables)
