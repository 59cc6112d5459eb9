# cython: nonecheck=False
# Nothing here is None but what is asked for it: these are the lines that each message passes.
"""A Python actor's dispatch: its messages, handed to its handler, up to the quantum."""

import heapq
from collections import deque

from cpython.object cimport PyObject
from libc.stdint cimport uint32_t

from callboard._inside.receiving.answering cimport answer_with
from callboard._inside.receiving.coroutine cimport begin
from callboard._inside.answers.future cimport Future
from callboard._inside.life.lifecycle cimport (
    ENDED, GAVE_UP, LATER, Verdict, attend, bury, current_error, fail, fail_message,
)
from callboard._inside.sending.overflow cimport release_popping
from callboard._inside.sending.values cimport take_value
from callboard._inside.receiving.variables cimport put_on, replace, take_off
from callboard._inside.sending.ref cimport CLOSED, LIVE, SUSPENDED, ActorRef, Carried, Extra
from callboard.core.node cimport Kind, Node, relaxed, wants_answer
from callboard.mailbox.limits cimport Overflow
from callboard.scheduling.cell cimport (
    Cell, Context, Outcome, account, carrying_cell, charge, end_turn, goes_on,
)

from callboard.core.log import log

cdef extern from "Python.h":
    PyObject* PyObject_Vectorcall(PyObject* callable, PyObject** args, size_t count, PyObject* names)
    const size_t PY_VECTORCALL_ARGUMENTS_OFFSET
    PyObject* Py_None
    int PyCoro_CheckExact(PyObject* object)
    void INCREF "Py_INCREF" (PyObject*)
    void DECREF "Py_DECREF" (PyObject*)
    void XDECREF "Py_XDECREF" (PyObject*)


cdef struct Message:
    PyObject* message  # owned
    PyObject* second   # owned: its sender, or the future that wants its answer; or null
    bint asked


cdef Outcome run_python(Cell* cell, Context* context, uint32_t quantum) noexcept:
    """Handle up to `quantum` messages. The calling thread has the readiness and the interpreter."""
    cdef ActorRef ref = <ActorRef>cell.owner
    cdef uint32_t handled = 0
    cdef Verdict verdict
    cdef uint32_t limit = quantum
    if cell.limits != NULL:
        cell.limits.set_runner(context, relaxed)
    while True:
        if ref.phase != LIVE or cell.has_system():
            # Counted before: the cell may be another's when attend() gives it up.
            if handled:
                account(cell, context, handled)
            limit -= handled
            handled = 0
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
            handled += run_many(ref, cell, context, limit - handled)
        else:
            limit = run_each(ref, cell, context, limit, &handled)
        take_off(cell, context)
        if ref.phase == LIVE and not cell.has_system():
            break
    account(cell, context, handled)
    if cell.limits != NULL:
        cell.limits.set_runner(NULL, relaxed)
    if ref.detour and not detour_is_over(ref):
        return Outcome.more
    if handled < limit:
        end_turn(context, limit)
        if try_idle(ref, context):
            return Outcome.done
    return Outcome.more


cdef inline bint try_idle(ActorRef ref, Context* context) noexcept:
    """Cell.try_idle(), for a caller whose reference keeps the cell."""
    if not drops_oldest(ref.cell):
        return ref.cell.try_idle()
    # Senders pop as well. Were one to pop between try_idle()'s load of the head and its exchange, and
    # its node come back as the tail, that exchange would succeed beside waiting messages.
    if not ref.cell.limits.popping.try_own():
        return False
    idle = ref.cell.try_idle()
    release_popping(ref, context)
    return idle


cdef inline bint drops_oldest(Cell* cell) noexcept:
    return cell.limits != NULL and cell.limits.overflow == Overflow.drop_oldest


cdef inline uint32_t run_each(
    ActorRef ref, Cell* cell, Context* context, uint32_t limit, uint32_t* count
) noexcept:
    """Hand messages to the handler, one after the other, until something else is to be done: one at
    least, if there is one. Adds to `count`, and returns the turn's limit."""
    cdef uint32_t handled = count[0]
    cdef Message taken
    cdef PyObject* args[3]  # the first is free for the callee
    cdef PyObject* result
    args[1] = <PyObject*>ref.instance
    while take(ref, cell, context, &taken):
        handled += 1
        if context.trace != NULL:
            note(ref, context, <object>taken.message)
        cell.message = taken.message
        cell.sender = taken.second
        cell.asked = taken.asked
        args[2] = taken.message
        result = call(ref, &args[1])
        if result != Py_None or taken.asked:
            settle(ref, context, &taken, result)
        else:
            DECREF(result)
        cell.message = NULL
        cell.sender = NULL
        DECREF(taken.message)
        XDECREF(taken.second)
        if cell.has_system() or ref.phase != LIVE or not goes_on(context, handled, limit):
            break
    count[0] = handled
    return limit


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


cdef void settle(ActorRef ref, Context* context, Message* taken, PyObject* result) noexcept:
    """The handler failed, or returned something. Takes `result` over."""
    cdef object answer
    message = <object>taken.message
    second = <object>taken.second if taken.second != NULL else None
    if result == NULL:
        error = current_error()
        if ref.cell.message == NULL:
            fail(ref, error, message)  # it was stashed, and will be handled again
        else:
            fail_message(ref, error, message, second, taken.asked)
        return
    answer = <object>result
    DECREF(result)
    if PyCoro_CheckExact(<PyObject*>answer):
        begin(ref, answer, message, second, taken.asked, context)
    elif taken.asked and ref.cell.message != NULL:  # null: the ask was stashed
        error = answer_with(ref, <Future>second, answer)
        if error is not None:
            fail_message(ref, error, message, second, True)


cdef uint32_t run_many(ActorRef ref, Cell* cell, Context* context, uint32_t quantum) noexcept:
    """Hand what waits to receive_many() as one list; an ask goes to the handler on its own."""
    cdef list messages = []
    cdef list kept = []
    cdef uint32_t handled = 0
    cdef bint asked = False
    cdef Message taken
    while handled < quantum and not asked and take(ref, cell, context, &taken):
        handled += 1
        asked = taken.asked
        if not asked:
            messages.append(<object>taken.message)
            DECREF(taken.message)
            XDECREF(taken.second)
    if messages:
        if ref.phase == LIVE:
            hand_over(ref, context, messages)
        else:  # a PriorityMailbox had no place for one that came
            kept = [(message, None, False) for message in messages]
    if asked:
        if ref.phase == LIVE and not cell.has_system():
            run_one(ref, cell, context, &taken)
        else:  # the batch before it failed, or stopped the actor
            kept.append((<object>taken.message, <object>taken.second, True))
            DECREF(taken.message)
            XDECREF(taken.second)
    if kept:
        keep(ref, kept)
    return handled


cdef void hand_over(ActorRef ref, Context* context, list messages) noexcept:
    if context.trace != NULL:
        for message in messages:
            note(ref, context, message)
    try:
        ref.instance.receive_many(messages)
    except BaseException as error:
        fail_many(ref, error, messages)


cdef void run_one(ActorRef ref, Cell* cell, Context* context, Message* taken) noexcept:
    cdef PyObject* args[3]
    if context.trace != NULL:
        note(ref, context, <object>taken.message)
    cell.message = taken.message
    cell.sender = taken.second
    cell.asked = taken.asked
    args[1] = <PyObject*>ref.instance
    args[2] = taken.message
    settle(ref, context, taken, call(ref, &args[1]))
    cell.message = NULL
    cell.sender = NULL
    DECREF(taken.message)
    XDECREF(taken.second)


cdef void keep(ActorRef ref, list letters) noexcept:
    """These were taken, and the actor does not go on as it is: keep them for later, or bury them."""
    cdef Extra extra
    if ref.phase == CLOSED:
        for message, second, asked in letters:
            bury(ref, message, second, asked)
        return
    extra = ref.extras()
    if extra.replay is None:
        extra.replay = deque()
    extra.replay.extendleft(reversed(letters))
    ref.detour = True


cdef void fail_many(ActorRef ref, object error, list messages) noexcept:
    """A batch failed: each message that is still in its list is a dead letter."""
    if not messages:
        fail(ref, error, None)
        return
    try:
        for message in messages[1:]:
            ref.runtime.dead_letters.post(message, ref, None, "failed", error)
    finally:
        fail_message(ref, error, messages[0], None, False)


# --- taking a message ----------------------------------------------------------------------------------


cdef inline bint take(ActorRef ref, Cell* cell, Context* context, Message* taken) noexcept:
    """Take the next message out; false if there is none just now."""
    if ref.detour:
        return take_by_detour(ref, cell, context, taken)
    return take_oldest(cell, context, taken)


cdef inline bint take_oldest(Cell* cell, Context* context, Message* taken) noexcept:
    cdef Node* spent = NULL
    cdef Node* node = cell.head.pop(spent)
    if node == NULL:
        return False
    fetch(node, taken)
    context.nodes.give(spent, cell.pool)
    if cell.limits != NULL:
        cell.limits.give_back(1)
    return True


cdef inline void fetch(Node* node, Message* taken) noexcept:
    """Take over what a node carries."""
    if node.kind <= Kind.ask:
        taken.message = <PyObject*>node.first
        taken.second = <PyObject*>node.second
        taken.asked = node.kind == Kind.ask
    else:
        fetch_native(node, taken)


cdef void fetch_native(Node* node, Message* taken) noexcept:
    """Make a Python object of a native value."""
    value = take_value(node)
    INCREF(<PyObject*>value)
    taken.message = <PyObject*>value
    taken.second = NULL
    taken.asked = node.kind != Kind.record and node.flags & wants_answer
    if taken.asked:
        taken.second = <PyObject*>node.second


cdef bint take_by_detour(ActorRef ref, Cell* cell, Context* context, Message* taken) noexcept:
    """The slow way of take()."""
    cdef bint found = take_first(ref, cell, context, taken)
    if cell.has(carrying_cell):
        if found:
            wear(context, taken)
        elif ref.phase != SUSPENDED:
            replace(context, NULL)  # the last message's are of no use any more
    return found


cdef void wear(Context* context, Message* taken) noexcept:
    """Put the context variables in place that the message was sent with."""
    variables = None
    if taken.second != NULL:
        second = <object>taken.second
        if taken.asked:
            variables = (<Future>second).variables
        elif isinstance(second, Carried):
            variables = (<Carried>second).variables
    if variables is None:
        replace(context, NULL)
    else:
        INCREF(<PyObject*>variables)
        replace(context, <PyObject*>variables)


cdef bint take_first(ActorRef ref, Cell* cell, Context* context, Message* taken) noexcept:
    """Messages put aside come first, then the heap, or the queue's oldest."""
    cdef Extra extra = ref.extra
    cdef bint found
    if extra is not None and extra.replay:
        put(taken, extra.replay.popleft())
        return True
    if ref.recipe.key is not None:
        return take_by_priority(ref, cell, context, taken)
    if not drops_oldest(cell):
        ref.detour = cell.has(carrying_cell)
        return take_oldest(cell, context, taken)
    if not cell.limits.popping.try_own():
        return False  # a sender drops a message just now: come back
    found = take_oldest(cell, context, taken)
    release_popping(ref, context)
    return found


cdef bint take_by_priority(ActorRef ref, Cell* cell, Context* context, Message* taken) noexcept:
    """Move what arrived to the heap, and take the least key; of equal keys, the earliest."""
    cdef Node* spent = NULL
    cdef Node* node
    cdef Extra extra = ref.extras()
    if extra.heap is None:
        extra.heap = []
    node = cell.head.pop(spent)
    while node != NULL:
        fetch(node, taken)
        context.nodes.give(spent, cell.pool)
        message = <object>taken.message
        second = <object>taken.second if taken.second != NULL else None
        asked = taken.asked
        DECREF(taken.message)
        XDECREF(taken.second)
        extra.arrivals += 1
        try:
            push_by_priority(
                extra, (ref.recipe.key(message), extra.arrivals, message, second, asked))
        except BaseException as error:
            if cell.limits != NULL:
                cell.limits.give_back(1)
            fail_message(ref, error, message, second, asked)
            if ref.phase != LIVE:
                return False
        node = cell.head.pop(spent)
    if not extra.heap:
        return False
    put(taken, pop_by_priority(ref, extra))
    if cell.limits != NULL:
        cell.limits.give_back(1)
    return True


cdef int push_by_priority(Extra extra, tuple entry) except -1:
    try:
        heapq.heappush(extra.heap, entry)
    except BaseException:
        # It is in the list by now, though its key cannot be compared with the others'.
        extra.heap = [other for other in extra.heap if other is not entry]
        heapq.heapify(extra.heap)
        raise
    return 0


cdef tuple pop_by_priority(ActorRef ref, Extra extra):
    entry = extra.heap[0]
    try:
        heapq.heappop(extra.heap)
    except BaseException as error:
        # The others are still there, in an order that their keys do not define.
        log.error("keys of a PriorityMailbox cannot be compared", actor=ref.path, exc_info=error)
    return entry[2:]


cdef void put(Message* taken, tuple letter) noexcept:
    message, second, asked = letter
    INCREF(<PyObject*>message)
    taken.message = <PyObject*>message
    taken.second = NULL
    if second is not None:
        INCREF(<PyObject*>second)
        taken.second = <PyObject*>second
    taken.asked = asked


cdef bint detour_is_over(ActorRef ref) noexcept:
    """Nothing waits beside the queue."""
    if ref.extra is not None and (ref.extra.replay or ref.extra.heap):
        return False
    if ref.recipe.key is None and not drops_oldest(ref.cell):
        ref.detour = ref.cell.has(carrying_cell)
    return True


cdef Outcome bury_all(ActorRef ref, Context* context) noexcept:
    """Make dead letters of all that waits in a closed actor's mailbox."""
    cdef Cell* cell = ref.cell
    cdef Node* spent = NULL
    cdef Node* node
    cdef Message taken
    cdef bint drops = drops_oldest(cell)
    if not ref.kept:
        INCREF(<PyObject*>ref)  # nobody else keeps a closed actor; see also ActorRef.wake()
        ref.kept = True
    if drops and not cell.limits.popping.try_own():
        return Outcome.more
    node = cell.head.pop(spent)
    while node != NULL:
        fetch(node, &taken)
        context.nodes.give(spent, cell.pool)
        message = <object>taken.message
        second = <object>taken.second if taken.second != NULL else None
        asked = taken.asked
        DECREF(taken.message)
        XDECREF(taken.second)
        if cell.limits != NULL:
            cell.limits.give_back(1)
        bury(ref, message, second, asked)
        node = cell.head.pop(spent)
    if drops:
        release_popping(ref, context)
    replace(context, NULL)  # what a subscriber of dead letters has set is nobody's
    charge(cell, context)
    if not try_idle(ref, context):
        return Outcome.more
    # `kept` stays true from now on: each later wake() brings a reference of its own.
    DECREF(<PyObject*>ref)
    return Outcome.done
