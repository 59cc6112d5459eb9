# cython: nonecheck=False
# Each message passes these lines. Only values that are compared with None may be None here.
"""An actor's dispatch: it passes messages to the handler, up to the quantum."""

cimport cython
from cpython.exc cimport PyErr_Occurred
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport uint32_t

from callboard._inside.answers.future cimport Future
from callboard._inside.life.failure cimport fail, fail_in_work, fail_message
from callboard._inside.life.unfinished cimport StepLock, pass_fence_after_concurrent
from callboard._inside.receiving.coroutine cimport begin, finish, launch_begun
from callboard._inside.receiving.system_messages cimport ENDED, GAVE_UP, LATER, Verdict, handle_system
from callboard._inside.sending.actor_cell cimport ActorCell, adopting_cell, closed_cell, native_cell, note_taken
from callboard._inside.sending.mailbox_take cimport (
    MESSAGE, NOTHING, TakeResult, dead_letter_queued, nothing_beside, take_first, take_oldest, try_idle,
)
from callboard._inside.sending.ref cimport CLOSED, LIVE, SUSPENDED, ActorRef, Envelope, Extra
from callboard._inside.sending.stored_envelope cimport (
    ADMITTED, CANCELLED, FAILED, FENCE, STOPPED, Carried, Fate, dead_letter_and_go_on, is_fence, stored_envelope,
    take_over, take_stored, variables_of,
)
from callboard._inside.sending.variables cimport enter_variables, leave_variables, replace
from callboard.core.asserting cimport holds
from callboard.core.awaitable cimport reraise
from callboard.core.memory.buffer cimport Buffer
from callboard.core.memory.node cimport Kind, Node, relaxed, wants_answer
from callboard.native cimport NativeActor
from callboard.scheduling.cell cimport Cell, Outcome
from callboard.scheduling.context cimport Context
from callboard.scheduling.dispatching cimport account, charge
from callboard.scheduling.dispatch_length cimport begin_dispatch, end_dispatch, goes_on


cdef extern from "Python.h":
    PyObject* PyObject_Vectorcall(PyObject* callable, PyObject** args, size_t count, PyObject* names)
    const size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    PyObject* Py_None
    int PyCoro_CheckExact(PyObject* object)
    void INCREF "Py_INCREF" (PyObject*)
    void DECREF "Py_DECREF" (PyObject*)


# How many messages one dispatch of a closed actor makes dead letters of. Its senders may go on for long, and the
# worker has other actors.
cdef uint32_t DEAD_LETTERS_AT_ONCE = 1024


cdef Outcome run_python(Cell* plain, Context* context, uint32_t quantum) noexcept:
    """Handle up to `quantum` messages. The calling thread has the readiness and the interpreter."""
    cdef ActorCell* cell = <ActorCell*>plain
    cdef ActorRef ref = <ActorRef>cell.owner
    cdef uint32_t handled = 0
    cdef uint32_t counted = 0  # of these, in account()
    cdef Verdict verdict
    cdef uint32_t limit = begin_dispatch(cell, context, quantum)
    assert holds(context.current == plain)
    assert holds(cell.limits == NULL or cell.limits.get_runner(relaxed) == NULL)  # one dispatch at a time
    if cell.limits != NULL:
        cell.limits.set_runner(context, relaxed)
    while True:
        if ref.phase != LIVE or cell.has_system():
            # Counted before: the cell may be another's when handle_system() gives it up.
            if handled != counted:
                account(cell, context, handled - counted)
                counted = handled
            if cell.limits != NULL:
                cell.limits.set_runner(NULL, relaxed)
            verdict = handle_system(ref, context)
            if verdict == GAVE_UP:
                return Outcome.done
            if verdict == ENDED:
                return dead_letter_all(ref, context)
            if verdict == LATER:
                return Outcome.more
            if cell.limits != NULL:
                cell.limits.set_runner(context, relaxed)
        if not goes_on(context, handled, limit):
            break
        assert holds(ref.instance is not None and ref.handler is not None and cell.in_work == NULL)
        enter_variables(cell, context)
        if ref.recipe.many and not ref.bound:
            handled += run_many(ref, cell, context, max(limit, quantum) - handled)
        else:
            limit = run_each(ref, cell, context, limit, &handled)
        leave_variables(cell, context)
        if ref.phase == LIVE and not cell.has_system():
            break
    assert holds(ref.phase == LIVE and handled >= counted)
    account(cell, context, handled - counted)
    if cell.limits != NULL:
        cell.limits.set_runner(NULL, relaxed)
    if ref.detour and not nothing_beside(ref):
        return Outcome.more
    if handled < limit:
        end_dispatch(context, limit)
    elif cell.check_interval != 1:
        return Outcome.more  # most likely there are more; a slow one looks
    if try_idle(ref, context):
        return Outcome.done
    return Outcome.more


cdef Outcome run_shared(Cell* plain, Context* context, uint32_t quantum) noexcept:
    """run_python() for an actor of whose messages the event loop runs some at the same time."""
    cdef ActorRef ref = <ActorRef>plain.owner  # kept: the readiness may be given up in the middle
    cdef StepLock step_lock = <StepLock>ref.extra.concurrency.step_lock if ref.extra is not None else None
    cdef Outcome outcome
    if step_lock is None:  # it is closed
        return run_python(plain, context, quantum)
    step_lock.enter_on_worker()
    outcome = run_python(plain, context, quantum)
    if step_lock.begun:
        begun, step_lock.begun = step_lock.begun, []
        launch_begun(ref, begun)  # before the next dispatch can: messages begin in their order
    step_lock.leave_on_worker()
    return outcome


cdef inline uint32_t run_each(
    ActorRef ref, ActorCell* cell, Context* context, uint32_t limit, uint32_t* count
) noexcept:
    """Hand messages to the handler, one after the other, until something else is to be done: one at
    least, if there is one. Add to `count`, and return the turn's limit."""
    cdef uint32_t handled = count[0]
    cdef Envelope envelope
    cdef PyObject* args[3]  # the first is free for the callee
    args[1] = <PyObject*>ref.instance
    while take(ref, cell, context, &envelope):
        handled += hand_over(ref, cell, context, &envelope, &args[1])
        if cell.has_system() or ref.phase != LIVE or not goes_on(context, handled, limit):
            break
    count[0] = handled
    return limit


cdef inline bint hand_over(
    ActorRef ref, ActorCell* cell, Context* context, Envelope* envelope, PyObject** args
) noexcept:
    """Call the handler, and let the message go. `args` are the instance and a place for the message. False: it was a
    fence, which does not count."""
    cdef PyObject* result
    assert holds(cell.in_work == NULL and envelope.message != NULL)
    assert holds(envelope.reply_to == NULL or envelope.sender == NULL)  # asked, or told
    if envelope.reply_to != NULL and envelope.message == <PyObject*>FENCE:
        pass_fence(ref, envelope)
        return False
    if context.trace != NULL:
        note(ref, context, <object>envelope.message)
    cell.in_work = envelope
    args[1] = envelope.message
    result = call(ref, args)
    if result != Py_None or envelope.reply_to != NULL:
        settle(ref, envelope, result)
    else:
        DECREF(result)
    cell.in_work = NULL
    DECREF(envelope.message)
    Py_XDECREF(envelope.sender)
    return True


cdef void pass_fence(ActorRef ref, Envelope* envelope) noexcept:
    """All messages before the fence have been handled, or begun."""
    pass_fence_after_concurrent(ref, take_over(envelope))


cdef void note(ActorRef ref, Context* context, object message) noexcept:
    (<object>context.trace)(ref, message)


cdef inline PyObject* call(ActorRef ref, PyObject** args) noexcept:
    """Call the handler. `args` are the instance and the message; the slot before them is free for the
    callee, and is left as it was."""
    cdef PyObject* handler = <PyObject*>ref.handler
    cdef PyObject* result
    if not ref.bound:
        return PyObject_Vectorcall(handler, args, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, NULL)
    INCREF(handler)  # it may become() another, and lose its last reference in the middle
    result = PyObject_Vectorcall(handler, args + 1, 1, NULL)
    DECREF(handler)
    return result


cdef void settle(ActorRef ref, Envelope* envelope, PyObject* result) noexcept:
    """The handler failed, or returned something, or was asked. Takes `result` over, and the future."""
    cdef object answer
    assert holds((result == NULL) == (PyErr_Occurred() != NULL))
    if result == NULL:
        fail_in_work(ref, current_error(), envelope)
    else:
        answer = <object>result
        DECREF(result)
        if PyCoro_CheckExact(<PyObject*>answer):
            begin(ref, answer, envelope)
        else:
            finish(ref, envelope, answer)
    Py_XDECREF(envelope.reply_to)


cdef object current_error():
    """Take the exception that is set, normalised and with its traceback."""
    try:
        reraise()
    except BaseException as error:
        return error


cdef uint32_t run_many(ActorRef ref, ActorCell* cell, Context* context, uint32_t quantum) noexcept:
    """Hand what waits to receive_many() as one list; an ask goes to the handler on its own."""
    cdef list messages = []
    cdef list kept = []
    cdef uint32_t handled = 0
    cdef bint asked = False
    cdef Envelope envelope
    cdef PyObject* args[3]  # as in run_each()
    while handled < quantum and not asked and take(ref, cell, context, &envelope):
        handled += 1
        asked = envelope.reply_to != NULL
        if not asked:
            messages.append(<object>envelope.message)
            DECREF(envelope.message)
            Py_XDECREF(envelope.sender)
    assert holds(len(messages) + asked == handled)
    if messages:
        if ref.phase == LIVE:
            hand_over_all(ref, context, messages)
        else:  # a PriorityMailbox had no place for one that came
            kept = [stored_envelope(message, None, None) for message in messages]
    if asked:
        if ref.phase == LIVE and not cell.has_system():
            args[1] = <PyObject*>ref.instance
            handled -= not hand_over(ref, cell, context, &envelope, &args[1])
        else:  # the batch before it failed, or stopped the actor
            kept.append(take_over(&envelope))
    if kept:
        keep(ref, kept)
    return handled


cdef void hand_over_all(ActorRef ref, Context* context, list messages) noexcept:
    if context.trace != NULL:
        for message in messages:
            note(ref, context, message)
    try:
        answer = ref.instance.receive_many(messages)
        if PyCoro_CheckExact(<PyObject*>answer):
            answer.close()
            raise TypeError(f"{ref._short_path}: receive_many() returned a coroutine, which would not be awaited")
    except BaseException as error:
        fail_many(ref, error, messages)


cdef void keep(ActorRef ref, list envelopes) noexcept:
    """These were taken, and the actor does not go on as it is: keep them for later, or make dead letters of them."""
    if ref.phase == CLOSED:
        for stored in envelopes:
            dead_letter_and_go_on(ref, ref.runtime, stored, STOPPED)
        return
    ref.put_back(envelopes)


cdef void fail_many(ActorRef ref, object error, list messages) noexcept:
    """A batch failed: each message that is still in its list is a dead letter."""
    if not messages:
        fail(ref, error, None)
        return
    for message in messages[1:]:
        dead_letter_and_go_on(ref, ref.runtime, stored_envelope(message, None, None), FAILED, error)
    fail_message(ref, error, stored_envelope(messages[0], None, None))


# --- taking a message ----------------------------------------------------------------------------------


cdef inline bint take(ActorRef ref, ActorCell* cell, Context* context, Envelope* envelope) noexcept:
    """Take the next message out; false if none is there."""
    if ref.detour:
        return take_by_detour(ref, cell, context, envelope)
    # Else messages come from the queue alone.
    assert holds(ref.intake is None and not cell.has(adopting_cell))
    assert holds(cell.limits == NULL or not cell.limits.senders_pop)
    return take_oldest(cell, context, envelope)


cdef bint take_by_detour(ActorRef ref, ActorCell* cell, Context* context, Envelope* envelope) noexcept:
    """The slow way of take()."""
    cdef TakeResult taken = take_first(ref, cell, context, envelope)
    cdef Fate fate = ADMITTED
    while taken != NOTHING:
        if taken == MESSAGE:
            fate = fate_of(ref, envelope)
            if fate == ADMITTED:
                break
            dead_letter_and_go_on(ref, ref.runtime, take_over(envelope), fate)
        else:
            stored, ref.intake.unfit = ref.intake.unfit, None
            error, ref.intake.misfit = ref.intake.misfit, None
            assert holds(stored is not None and error is not None)
            fail_message(ref, error, stored)
        taken = take_first(ref, cell, context, envelope) if ref.phase == LIVE else NOTHING
    if taken == NOTHING and ref.extra is not None and ref.phase == LIVE:
        ref.extra.skips = False  # a cancelled ask may come behind a push that is not linked yet: it is handled then
    cdef bint found = taken == MESSAGE
    assert holds(not found or envelope.message != NULL)
    if cell.has(adopting_cell):
        if found:
            adopt_variables(context, envelope)
        elif ref.phase != SUSPENDED:
            replace(context, NULL)  # the last message's are no longer needed
    return found


cdef Fate fate_of(ActorRef ref, Envelope* envelope) noexcept:
    """Tell whether a message is to be handled: the actor may be about to stop, or the asker has cancelled it, or the
    actor its timer."""
    cdef Extra extra = ref.extra
    if extra is None:
        return ADMITTED
    if extra.concurrency is not None and extra.concurrency.closes:
        return STOPPED
    if extra.skips and envelope.reply_to != NULL and (<Future>envelope.reply_to).was_withdrawn():
        return CANCELLED
    if extra.timers is None or extra.timers.keyed is None or envelope.sender == NULL:
        return ADMITTED
    if is_of_cancelled_timer(<object>envelope.sender):
        return CANCELLED
    return ADMITTED


cdef bint is_of_cancelled_timer(object sender) noexcept:
    timer = (<Carried>sender).timer if isinstance(sender, Carried) else None
    return timer is not None and timer.is_cancelled


cdef void adopt_variables(Context* context, Envelope* envelope) noexcept:
    """Put the context variables in place that the message was sent with."""
    variables = variables_of(envelope)
    if variables is None:
        replace(context, NULL)
    else:
        INCREF(<PyObject*>variables)
        replace(context, <PyObject*>variables)


cdef Outcome dead_letter_all(ActorRef ref, Context* context) noexcept:
    """Make dead letters of all that waits in a closed actor's queue."""
    cdef bint is_empty
    assert holds(ref.phase == CLOSED and ref.cell.has(closed_cell) and ref.instance is None)
    if not ref.kept:
        INCREF(<PyObject*>ref)  # this reference keeps a closed actor; see also ActorRef.wake()
        ref.kept = True
    is_empty = dead_letter_queued(ref, context, DEAD_LETTERS_AT_ONCE)
    replace(context, NULL)  # variables that a subscriber of dead letters has set belong to no actor
    charge(ref.cell, context)
    if not is_empty or not try_idle(ref, context):
        return Outcome.more
    # `kept` stays true from now on: each later wake() brings its own reference.
    DECREF(<PyObject*>ref)
    return Outcome.done


# --- native actors: messages are handed to receive() where they lie ------------------------------------


cdef extern from *:
    bint unlikely "__builtin_expect" (bint condition, bint usual) nogil

ctypedef Outcome (*Loop)(void*, void*, ActorCell*, Context*, uint32_t) noexcept nogil


@cython.nonecheck(False)
cdef Outcome run_native(Cell* plain, Context* context, uint32_t quantum) noexcept nogil:
    """Hand up to `quantum` messages to the actor's receive()."""
    cdef ActorCell* cell = <ActorCell*>plain
    cdef Outcome outcome
    assert holds(context.current == plain and plain.has(native_cell))
    if unlikely(not (<bint (*)(void*) noexcept nogil>is_live)(cell.owner) or cell.has_system(), False):
        with gil:
            if not handle_system_of_native(cell, context, &outcome):
                return outcome
    return (<Loop>run_loop)(cell.object, cell.owner, cell, context, quantum)


cdef bint handle_system_of_native(ActorCell* cell, Context* context, Outcome* outcome) noexcept:
    """Handle system messages; False, with the outcome, if no user message is to be handled."""
    cdef ActorRef ref = <ActorRef>cell.owner  # when the actor ends, this may be the last reference
    cdef Verdict verdict = handle_system(ref, context)
    if verdict == ENDED:
        outcome[0] = dead_letter_all(ref, context)
    else:
        outcome[0] = Outcome.more if verdict == LATER else Outcome.done
    return verdict != ENDED and verdict != LATER and verdict != GAVE_UP


@cython.nonecheck(False)
cdef bint is_live(ActorRef ref) noexcept nogil:
    return ref.phase == LIVE


@cython.nonecheck(False)
cdef Outcome run_loop(
    NativeActor actor, ActorRef ref, ActorCell* cell, Context* context, uint32_t quantum
) noexcept nogil:
    # The arguments are borrowed; the actor lives as long as its cell is in work here.
    cdef Node* spent = NULL
    cdef Node* node
    cdef uint32_t handled = 0
    cdef uint32_t limit = begin_dispatch(cell, context, quantum)
    assert holds(cell.object == <void*>actor and actor.asked == NULL)
    enter_variables(cell, context)
    if actor.context != context:  # actors of other workers may be neighbours on its cache line
        actor.context = context
    while True:
        node = cell.head.pop(spent)
        if node == NULL:
            break
        context.nodes.give(spent, cell.spare)
        handled += 1
        assert holds(node.kind > Kind.ask or is_fence(node))
        # The node stays as the queue's dummy until the next pop: receive() reads it in place.
        if node.flags & wants_answer:
            if is_fence(node):
                pass_native_fence(node)
                handled -= 1  # it does not count
                if cell.has_system() or ref.phase != LIVE:
                    leave_variables(cell, context)
                    account(cell, context, handled)
                    return Outcome.more
                if not goes_on(context, handled, limit):
                    break
                continue
            actor.asked = node
        if cell.limits != NULL:
            cell.limits.give_back(1)
            note_taken(node, cell, context)
        actor.receive(node)
        if actor.asked != NULL:
            answer_nothing(actor)
            assert holds(actor.asked == NULL)
        if node.kind == Kind.buffer:
            (<Buffer*>node.first).drop()
        if cell.has_system() or ref.phase != LIVE:
            leave_variables(cell, context)
            account(cell, context, handled)
            return Outcome.more
        if not goes_on(context, handled, limit):
            break
    leave_variables(cell, context)
    account(cell, context, handled)
    if handled < limit:
        end_dispatch(context, limit)
    elif cell.check_interval != 1:
        return Outcome.more  # as in run_python()
    if cell.try_idle():
        return Outcome.done
    return Outcome.more


cdef void pass_native_fence(Node* node) noexcept nogil:
    """All messages before the fence have been handled: see stored_envelope.pxd."""
    with gil:
        stored = take_stored(node)
        assert holds(stored.message is FENCE and stored.reply_to is not None)
        stored.reply_to.complete(None, None)


cdef void answer_nothing(NativeActor actor) noexcept nogil:
    """An ask that receive() left unanswered is answered with None."""
    with gil:
        actor.answer(None)
