# cython: nonecheck=False
# Nothing here is None but what is asked for it: these are the lines that each message passes.
"""A Python actor's dispatch: its messages, handed to its handler, up to the quantum."""

import heapq

from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF, Py_XINCREF
from libc.stdint cimport uint32_t

from callboard._inside.answers.future cimport Future
from callboard._inside.life.failure cimport fail, fail_in_work, fail_message
from callboard._inside.receiving.coroutine cimport begin, finish
from callboard._inside.receiving.system_messages cimport ENDED, GAVE_UP, LATER, Verdict, attend
from callboard._inside.sending.burying cimport FAILED, STOPPED, bury_and_go_on
from callboard._inside.sending.letter cimport MARK, Carried, Letter, fetch, letter_of, take_letter, take_over
from callboard._inside.sending.overflow cimport release_popping, senders_pop
from callboard._inside.sending.ranked cimport Ranked, push_ranked
from callboard._inside.sending.ref cimport CLOSED, LIVE, SUSPENDED, ActorCell, ActorRef, Envelope, Extra, cell_of
from callboard._inside.sending.variables cimport put_on, replace, take_off
from callboard.core.memory.node cimport Node, relaxed
from callboard.scheduling.cell cimport (
    Cell, Context, Outcome, account, begin_turn, carrying_cell, charge, end_turn, goes_on,
)

from callboard.core.log import log

cdef extern from "Python.h":
    PyObject* PyObject_Vectorcall(PyObject* callable, PyObject** args, size_t count, PyObject* names)
    const size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    PyObject* Py_None
    int PyCoro_CheckExact(PyObject* object)
    void INCREF "Py_INCREF" (PyObject*)
    void DECREF "Py_DECREF" (PyObject*)


# How many messages one dispatch of a closed actor buries. Its senders may go on for long, and the
# worker has other actors.
cdef uint32_t BURIED_AT_ONCE = 1024


cdef extern from *:
    """
    // Takes the exception that a C call left: Cython's `except` does the rest.
    static int callboard_reraise(void) { return -1; }
    """
    int reraise "callboard_reraise" () except -1


cdef Outcome run_python(Cell* plain, Context* context, uint32_t quantum) noexcept:
    """Handle up to `quantum` messages. The calling thread has the readiness and the interpreter."""
    cdef ActorCell* cell = <ActorCell*>plain
    cdef ActorRef ref = <ActorRef>cell.owner
    cdef uint32_t handled = 0
    cdef uint32_t counted = 0  # of these, in account()
    cdef Verdict verdict
    cdef uint32_t limit = begin_turn(cell, context, quantum)
    if cell.limits != NULL:
        cell.limits.set_runner(context, relaxed)
    while True:
        if ref.phase != LIVE or cell.has_system():
            # Counted before: the cell may be another's when attend() gives it up.
            if handled != counted:
                account(cell, context, handled - counted)
                counted = handled
            if cell.limits != NULL:
                cell.limits.set_runner(NULL, relaxed)
            verdict = attend(ref, context)
            if verdict == GAVE_UP:
                return Outcome.done
            if verdict == ENDED:
                return bury_all(ref, context)
            if verdict == LATER:
                return Outcome.more
            if cell.limits != NULL:
                cell.limits.set_runner(context, relaxed)
        if not goes_on(context, handled, limit):
            break
        put_on(cell, context)
        if ref.recipe.many and not ref.bound:
            handled += run_many(ref, cell, context, max(limit, quantum) - handled)
        else:
            limit = run_each(ref, cell, context, limit, &handled)
        take_off(cell, context)
        if ref.phase == LIVE and not cell.has_system():
            break
    account(cell, context, handled - counted)
    if cell.limits != NULL:
        cell.limits.set_runner(NULL, relaxed)
    if ref.detour and not detour_is_over(ref):
        return Outcome.more
    if handled < limit:
        end_turn(context, limit)
    elif cell.pace != 1:
        return Outcome.more  # most likely there are more; a slow one looks
    if try_idle(ref, context):
        return Outcome.done
    return Outcome.more


cdef inline bint try_idle(ActorRef ref, Context* context) noexcept:
    """Cell.try_idle(), for a caller whose reference keeps the cell."""
    if not senders_pop(ref.cell):
        return ref.cell.try_idle()
    # Senders pop as well. Were one to pop between try_idle()'s load of the head and its exchange, and
    # its node come back as the tail, that exchange would succeed beside waiting messages.
    if not ref.cell.limits.popping.try_own():
        return False
    idle = ref.cell.try_idle()
    release_popping(ref, ref.runtime, context)
    return idle


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
        handled += 1
        hand_over(ref, cell, context, &envelope, &args[1])
        if cell.has_system() or ref.phase != LIVE or not goes_on(context, handled, limit):
            break
    count[0] = handled
    return limit


cdef inline void hand_over(
    ActorRef ref, ActorCell* cell, Context* context, Envelope* envelope, PyObject** args
) noexcept:
    """Call the handler, and let the message go. `args` are the instance and a place for the message."""
    cdef PyObject* result
    if envelope.reply_to != NULL and envelope.message == <PyObject*>MARK:
        pass_mark(envelope)
        return
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


cdef void pass_mark(Envelope* envelope) noexcept:
    """The turn of a mark has come."""
    letter = take_over(envelope)
    letter.reply_to.complete(None, None)


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
    if messages:
        if ref.phase == LIVE:
            hand_over_all(ref, context, messages)
        else:  # a PriorityMailbox had no place for one that came
            kept = [letter_of(message, None, None) for message in messages]
    if asked:
        if ref.phase == LIVE and not cell.has_system():
            args[1] = <PyObject*>ref.instance
            hand_over(ref, cell, context, &envelope, &args[1])
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
        ref.instance.receive_many(messages)
    except BaseException as error:
        fail_many(ref, error, messages)


cdef void keep(ActorRef ref, list letters) noexcept:
    """These were taken, and the actor does not go on as it is: keep them for later, or bury them."""
    if ref.phase == CLOSED:
        for letter in letters:
            bury_and_go_on(ref, ref.runtime, letter, STOPPED)
        return
    ref.extras().replay_first(letters)
    ref.detour = True


cdef void fail_many(ActorRef ref, object error, list messages) noexcept:
    """A batch failed: each message that is still in its list is a dead letter."""
    if not messages:
        fail(ref, error, None)
        return
    for message in messages[1:]:
        bury_and_go_on(ref, ref.runtime, letter_of(message, None, None), FAILED, error)
    fail_message(ref, error, letter_of(messages[0], None, None))


# --- taking a message ----------------------------------------------------------------------------------


cdef inline bint take(ActorRef ref, ActorCell* cell, Context* context, Envelope* envelope) noexcept:
    """Take the next message out; false if there is none just now."""
    if ref.detour:
        return take_by_detour(ref, cell, context, envelope)
    return take_oldest(cell, context, envelope)


cdef inline bint take_oldest(ActorCell* cell, Context* context, Envelope* envelope) noexcept:
    cdef Node* spent = NULL
    cdef Node* node = cell.head.pop(spent)
    if node == NULL:
        return False
    fetch(node, envelope)
    context.nodes.give(spent, cell.pool)
    if cell.limits != NULL:
        cell.limits.give_back(1)
    return True


cdef bint take_by_detour(ActorRef ref, ActorCell* cell, Context* context, Envelope* envelope) noexcept:
    """The slow way of take()."""
    cdef bint found = take_first(ref, cell, context, envelope)
    if cell.has(carrying_cell):
        if found:
            wear(context, envelope)
        elif ref.phase != SUSPENDED:
            replace(context, NULL)  # the last message's are of no use any more
    return found


cdef void wear(Context* context, Envelope* envelope) noexcept:
    """Put the context variables in place that the message was sent with."""
    variables = None
    if envelope.reply_to != NULL:
        variables = (<Future>envelope.reply_to).variables
    elif envelope.sender != NULL:
        sender = <object>envelope.sender
        if isinstance(sender, Carried):
            variables = (<Carried>sender).variables
    if variables is None:
        replace(context, NULL)
    else:
        INCREF(<PyObject*>variables)
        replace(context, <PyObject*>variables)


cdef bint take_first(ActorRef ref, ActorCell* cell, Context* context, Envelope* envelope) noexcept:
    """Messages put aside come first, then the heap, or the queue's oldest."""
    cdef Extra extra = ref.extra
    cdef bint found
    if extra is not None and extra.replay:
        open_letter(extra.replay.popleft(), envelope)
        return True
    if ref.recipe.key is not None:
        return take_by_priority(ref, cell, context, envelope)
    if not senders_pop(cell):
        ref.detour = cell.has(carrying_cell)
        return take_oldest(cell, context, envelope)
    if not cell.limits.popping.try_own():
        return False  # a sender drops a message just now: come back
    found = take_oldest(cell, context, envelope)
    release_popping(ref, ref.runtime, context)
    return found


cdef bint take_by_priority(ActorRef ref, ActorCell* cell, Context* context, Envelope* envelope) noexcept:
    """Move what arrived to the heap, and take what comes first: see ranked.pyx."""
    cdef Node* spent = NULL
    cdef Node* node
    cdef Letter letter
    cdef Extra extra = ref.extras()
    if extra.heap is None:
        extra.heap = []
    node = cell.head.pop(spent)
    while node != NULL:
        letter = take_letter(node)
        context.nodes.give(spent, cell.pool)
        if letter.message is MARK:
            put_mark_last(extra, letter)
            if cell.limits != NULL:
                cell.limits.give_back(1)
            node = cell.head.pop(spent)
            continue
        extra.arrivals += 1
        try:
            push_ranked(extra.heap, ref.recipe.key, letter, extra.arrivals)
        except BaseException as error:
            if cell.limits != NULL:
                cell.limits.give_back(1)
            fail_message(ref, error, letter)
            if ref.phase != LIVE:
                return False
        node = cell.head.pop(spent)
    if not extra.heap:
        if extra.marks:
            pass_marks(extra)
        return False
    open_letter(pop_by_priority(ref, extra), envelope)
    if cell.limits != NULL:
        cell.limits.give_back(1)
    return True


cdef void put_mark_last(Extra extra, Letter letter) noexcept:
    """Have a mark wait until nothing else does: it has no key."""
    if extra.marks is None:
        extra.marks = []
    extra.marks.append(letter)


cdef void pass_marks(Extra extra) noexcept:
    cdef Letter letter
    marks = extra.marks
    extra.marks = None
    for letter in marks:
        letter.reply_to.complete(None, None)


cdef Letter pop_by_priority(ActorRef ref, Extra extra):
    cdef Ranked ranked = extra.heap[0]
    try:
        heapq.heappop(extra.heap)
    except BaseException as error:
        # The others are still there, in an order that their keys do not define.
        log.error("keys of a PriorityMailbox cannot be compared", actor=ref._short_path, exc_info=error)
    return ranked.letter


cdef void open_letter(Letter letter, Envelope* envelope) noexcept:
    envelope[0] = letter.lend()
    INCREF(envelope.message)
    Py_XINCREF(envelope.sender)
    Py_XINCREF(envelope.reply_to)


cdef bint detour_is_over(ActorRef ref) noexcept:
    """Nothing waits beside the queue."""
    if ref.extra is not None and (ref.extra.replay or ref.extra.heap or ref.extra.marks):
        return False
    if ref.recipe.key is None and not senders_pop(ref.cell):
        ref.detour = ref.cell.has(carrying_cell)
    return True


cdef Outcome bury_all(ActorRef ref, Context* context) noexcept:
    """Make dead letters of all that waits in a closed actor's mailbox."""
    cdef ActorCell* cell = cell_of(ref)
    cdef Node* spent = NULL
    cdef Node* node
    cdef uint32_t left = BURIED_AT_ONCE
    cdef bint drops = senders_pop(cell)
    if not ref.kept:
        INCREF(<PyObject*>ref)  # nobody else keeps a closed actor; see also ActorRef.wake()
        ref.kept = True
    if drops and not cell.limits.popping.try_own():
        return Outcome.more
    node = cell.head.pop(spent)
    while node != NULL:
        letter = take_letter(node)
        context.nodes.give(spent, cell.pool)
        if cell.limits != NULL:
            cell.limits.give_back(1)
        bury_and_go_on(ref, ref.runtime, letter, STOPPED)
        left -= 1
        node = cell.head.pop(spent) if left != 0 else NULL
    if drops:
        release_popping(ref, ref.runtime, context)
    replace(context, NULL)  # what a subscriber of dead letters has set is nobody's
    charge(cell, context)
    if left == 0 or not try_idle(ref, context):
        return Outcome.more
    # `kept` stays true from now on: each later wake() brings a reference of its own.
    DECREF(<PyObject*>ref)
    return Outcome.done
