"""Admission to a mailbox, and the overflow policies of a full one: a class for each policy."""

import weakref

from cpython.exc cimport PyErr_CheckSignals
from cpython.object cimport PyObject
from cpython.ref cimport Py_XDECREF
from libc.stdint cimport int64_t, uint32_t

from callboard._inside.answers.waiters cimport Waiter
from callboard._inside.sending.actor_cell cimport ActorCell
from callboard._inside.sending.stored_envelope cimport (
    ADMITTED, DROPPED_NEWEST, DROPPED_OLDEST, FENCE, dead_letter, is_fence, take_stored,
)
from callboard.core.asserting cimport holds
from callboard.core.clock cimport SIGNAL_CHECK_NS, monotonic_ns
from callboard.core.memory.node cimport Node, await_interpreter, relaxed
from callboard.mailbox.limits cimport Limits
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.dispatching cimport wait_for_room
from callboard.scheduling.worker cimport LOOK_AHEAD, WorkerThread
from callboard.scheduling.worker_core cimport Worker

from callboard.core.errors import ForkedSystem, MailboxFull
from callboard.core.log import log


# --- admission: each message that does not simply find room passes here --------------------------------


cdef Fate admit(Handle to, Runtime runtime, Fate found, Context* context) except? FULL:
    """Say whether a message may be sent, after a look_in() that `found` how it is. If not, why not.

    Raises MailboxFull as the overflow policy says, ForkedSystem, TypeError for a task, and what a signal raises
    (Ctrl-C) while this waits for room.
    """
    if found == FULL:
        assert holds((<ActorCell*>to.cell).overflow != NULL)
        return (<Overflow>(<ActorCell*>to.cell).overflow).make_room(to, runtime, context)
    if found == FORKED:
        raise ForkedSystem(
            f"{to._short_path} lives in the process that made its system; make one in this process")
    if found == MISSENT:
        raise TypeError(f"{to._short_path} is a task, and takes no messages: send into its channels")
    return found


cdef bint admit_or_dead_letter(
    Handle to, Runtime runtime, Fate found, StoredEnvelope stored, Context* context
) except -1:
    """The same for a message whose sender is told by an exception, and whose asker by the future.

    False: it is not to be sent.
    """
    cdef Fate fate
    try:
        fate = admit(to, runtime, found, context)
    except BaseException as error:
        if stored.reply_to is None:
            raise
        stored.reply_to.complete(None, error)
        if found == FORKED or found == MISSENT or not isinstance(error, Exception):
            raise  # Ctrl-C while it waited for room is not only the future's business
        return False
    assert holds(found != ADMITTED)
    if fate == ADMITTED:
        return True
    dead_letter(to, runtime, stored, fate)
    return False


# --- policies ------------------------------------------------------------------------------------------


# How long a wait within a wait lasts, and how deep such waits are nested, at most: then the mailbox's capacity is
# exceeded. After this many waits that found no room, none waits until one finds some, or the outermost wait goes on.
cdef int64_t WITHIN_NS = 10_000_000
cdef uint32_t DEEPEST = 8
cdef int MOST_IN_VAIN = 10
# As the beginning of a turn: no time slice is that long. Less would overflow.
cdef int64_t LONG_AGO = -(<int64_t>1 << 62)


cdef class Overflow:
    """A sender's policy when the mailbox is full."""

    cdef Fate make_room(self, Handle to, Runtime runtime, Context* context) except? FULL:
        """Take room for one message that found none, or say what becomes of it instead.

        Raises MailboxFull to refuse it.
        """
        raise NotImplementedError

    cdef Fate give_up(self, Handle to, str obstacle) except? FULL:
        """Likewise, after a wait that found none."""
        raise NotImplementedError


cdef str stayed_full(Limits* limits):
    return f"stayed full ({limits.capacity} messages) for {limits.timeout_ns / 1e9:g} s"


cdef class Block(Overflow):
    """Wait for room: an outside thread sleeps, a worker runs other actors."""

    def __cinit__(self):
        self.waits = True

    cdef Fate make_room(self, Handle to, Runtime runtime, Context* context) except? FULL:
        cdef Limits* limits = to.cell.limits
        cdef int64_t begin = monotonic_ns()
        cdef int64_t left
        # Only the outermost dispatch on a thread waits for long. One that runs while another below it on the stack
        # waits must come back: what it waits for may wait for that other. And so the stack stays low.
        cdef uint32_t outermost = 1 if runtime.manual else 0
        cdef str obstacle = None
        cdef bint is_below
        # The clock of a manual system stands still during the call: a wait that lasts is one of many steps.
        cdef bint is_logical = runtime.manual and (context.worker != NULL or runtime.system._is_run_here)
        cdef int64_t steps = runtime.system.max_steps if is_logical else -1
        assert holds(limits != NULL and limits.capacity > 0)
        while obstacle is None:
            left = limits.timeout_ns - (0 if is_logical else monotonic_ns() - begin)
            # In the middle of a message, and in a hook, the actor itself is current; the runner is one further
            # down the stack, too.
            is_below = context.worker != NULL and limits.get_runner(relaxed) == <void*>context
            if context.current == to.cell or (is_below and context.depth <= outermost):
                obstacle = (
                    f"is full ({limits.capacity} messages), and its actor is in the middle of the message "
                    "that led to this send, so no room can come"
                )
            elif context.depth > outermost and runtime.manual:
                limits.exceed(1)
                return ADMITTED
            elif left <= 0 and not is_below:
                obstacle = stayed_full(limits)
            elif context.depth > outermost:
                if is_below or not self.wait_within(to, context, begin, left):
                    others_on(context.worker).exceed(to, context)
                    return ADMITTED
                if limits.reserve(1):
                    others_on(context.worker).vain_waits = 0
                    return ADMITTED
                continue
            elif steps == 0:
                obstacle = f"stayed full ({limits.capacity} messages) for all the steps of its manual system"
            elif not self.wait_noted(to, runtime, context, left):
                obstacle = (
                    f"is full ({limits.capacity} messages), and nothing else is ready in its manual system"
                )
            elif limits.reserve(1):
                return ADMITTED
            steps -= 1
        return self.give_up(to, obstacle)

    cdef bint wait_noted(self, Handle to, Runtime runtime, Context* context, int64_t left) except -1:
        """wait_once(), and statistics say so of the actor that sends, if it is one."""
        cdef Waiter sender = <Waiter>context.current.owner if context.current != NULL else None
        if sender is None:
            return self.wait_once(to, runtime, context, left)
        sender.note_full(to)
        try:
            return self.wait_once(to, runtime, context, left)
        finally:
            sender.note_full(None)

    cdef bint wait_once(self, Handle to, Runtime runtime, Context* context, int64_t left) except -1:
        """Let another actor run, or sleep until there may be room, or an actor to run, `left` ns at most.

        False in a manual system in which nothing is ready.
        """
        cdef Limits* limits = to.cell.limits
        if context.worker == NULL:
            if runtime.manual and runtime.system._is_run_here:
                return runtime.system.step()
            left = min(left, SIGNAL_CHECK_NS)
        elif self.run_another(<WorkerThread>context.worker.owner, to):
            return True
        elif runtime.manual:
            return False
        # Nothing to run here: the receiver is with another worker, or waits in the middle of a message.
        with nogil:
            wait_for_room(limits[0], context, left)
            await_interpreter(monotonic_ns())
        PyErr_CheckSignals()
        return True

    cdef bint wait_within(self, Handle to, Context* context, int64_t begin, int64_t left) except -1:
        """In a wait within a wait, run the receiver, and no other. If no other could run, either, wait a little for
        the receiver's worker, `left` ns at most. False: no more."""
        cdef Others others = others_on(context.worker)
        if context.depth > DEEPEST:
            return False
        if (<WorkerThread>context.worker.owner).step_only_to(to.cell):
            return True
        if others.vain_waits >= MOST_IN_VAIN or others.could_run(context.worker):
            return False
        left = min(left, begin + WITHIN_NS - monotonic_ns())
        if left <= 0:
            others.vain_waits += 1
            return False
        with nogil:
            wait_for_room(to.cell.limits[0], context, left)
            await_interpreter(monotonic_ns())
        PyErr_CheckSignals()
        return True

    cdef bint run_another(self, WorkerThread worker, Handle to) noexcept:
        return others_on(worker.core).step(worker)

    cdef Fate give_up(self, Handle to, str obstacle) except? FULL:
        to.cell.limits.add_dropped(1, relaxed)
        raise MailboxFull(f"the mailbox of {to._short_path} {obstacle}")


cdef class Help(Block):
    """Wait for room, and run the receiver itself first (Schneider and Wu 2017, section 4.1)."""

    cdef bint run_another(self, WorkerThread worker, Handle to) noexcept:
        return worker.step_only_to(to.cell) or others_on(worker.core).step(worker)


cdef class Throttle(Block):
    """Wait for a time slice, then send in any case (Das et al. 2009, section 4.3.3)."""

    cdef Fate give_up(self, Handle to, str obstacle) except? FULL:
        to.cell.limits.exceed(1)
        return ADMITTED


cdef class Fail(Overflow):
    """Refuse."""

    cdef Fate make_room(self, Handle to, Runtime runtime, Context* context) except? FULL:
        cdef Limits* limits = to.cell.limits
        limits.add_dropped(1, relaxed)
        raise MailboxFull(f"the mailbox of {to._short_path} is full: {limits.capacity} messages wait")


cdef class DropNewest(Overflow):
    """Drop the message that found no room."""

    cdef Fate make_room(self, Handle to, Runtime runtime, Context* context) except? FULL:
        to.cell.limits.add_dropped(1, relaxed)
        return DROPPED_NEWEST


cdef class DropOldest(Overflow):
    """Drop the oldest message, or have the thread drop it that is popping just now."""

    def __cinit__(self):
        self.senders_pop = True

    cdef Fate make_room(self, Handle to, Runtime runtime, Context* context) except? FULL:
        cdef Dropped dropped = [NULL, NULL]
        to.cell.limits.exceed(1)  # first, so that the message that is dropped is never this one's successor
        if to.cell.limits.popping.own_or_delegate():
            pop_one(to.cell, &dropped)
            release(to.cell, &dropped)
            error = dead_letter_dropped(to, runtime, context, dropped.first)
            if error is not None:
                to.cell.limits.give_back(1)  # of the message, which is not sent
                raise error
        return ADMITTED


cdef dict POLICIES = {
    "block": Block(),
    "help": Help(),
    "drop_newest": DropNewest(),
    "drop_oldest": DropOldest(),
    "fail": Fail(),
    "throttle": Throttle(),
}
OVERFLOWS = tuple(POLICIES)


cdef Overflow overflow_named(str name):
    """Return the policy with this name, which lives for ever."""
    return <Overflow?>POLICIES[name]


# --- waits within waits -------------------------------------------------------------------------------


cdef class Others:
    """The other actors of a worker on which one waits for room. The worker's thread alone uses this.

    One of them that exceeds a capacity is held back: in such waits it runs last, for as long as it would have waited.
    So the worker does not sleep, and the mailbox gets about as much as if it did.
    """

    cdef int vain_waits  # within a wait, since one found room
    cdef dict held_back  # a cell's address -> a weak reference to the receiver that was full, and until when

    def __cinit__(self):
        self.held_back = {}

    cdef bint step(self, WorkerThread worker) noexcept:
        """Dispatch a ready actor, those last that are held back. False: none is ready."""
        cdef Cell* cell = NULL
        self.vain_waits = 0
        if self.held_back:
            worker.core.take_in()
            cell = self.fetch(worker.core)
        if cell == NULL:
            return worker.step()
        worker.dispatch_or_delegate(cell)
        return True

    cdef bint could_run(self, Worker* core) noexcept:
        """Tell whether an actor is ready that is not held back."""
        cdef Cell* cell = self.fetch(core)
        if cell != NULL:
            core.put(cell)
        return cell != NULL

    cdef Cell* fetch(self, Worker* core) noexcept:
        """Fetch the first ready actor that is not held back. NULL: there is none among the first."""
        cdef Cell* passed[LOOK_AHEAD]
        cdef int count = 0
        cdef int i
        cdef Cell* cell = core.fetch()
        while cell != NULL and self.is_held_back(cell):
            passed[count] = cell
            count += 1
            cell = core.fetch() if count < LOOK_AHEAD else NULL
        for i in range(count):
            core.put(passed[i])
        return cell

    cdef bint is_held_back(self, Cell* cell) noexcept:
        found = self.held_back.get(<size_t>cell)
        if found is None:
            return False
        receiver, until = found
        to = receiver()
        if to is not None and not (<Handle>to).cell.limits.has_room() and monotonic_ns() < until:
            return True
        del self.held_back[<size_t>cell]
        return False

    cdef int exceed(self, Handle to, Context* context) except -1:
        """Take room past the capacity for the actor in work. Its turn ends, and it is held back."""
        cdef Limits* limits = to.cell.limits
        if len(self.held_back) == LOOK_AHEAD:  # some may have ended
            self.held_back.clear()
        self.held_back[<size_t>context.current] = (
            weakref.ref(to), monotonic_ns() + min(WITHIN_NS, limits.timeout_ns))
        limits.exceed(1)
        context.dispatch_began = LONG_AGO
        return 0


cdef Others others_on(Worker* core):
    cdef WorkerThread worker = <WorkerThread>core.owner
    if worker.others is None:
        worker.others = Others.__new__(Others)
    return <Others>worker.others


# --- messages that senders drop -----------------------------------------------------------------------


# The messages that were dropped while the popping was owned: spent nodes carry them, the oldest first. The
# owner runs no Python code, because that could switch threads. A worker that has the interpreter and finds the popping
# owned comes back at once, again and again, and never lets the interpreter go.
cdef struct Dropped:
    Node* first
    Node* last


cdef void release_popping(Handle to, Runtime runtime, Context* context) noexcept:
    """Let the popping go, after all drops that were handed over."""
    cdef Dropped dropped = [NULL, NULL]
    release(to.cell, &dropped)
    if dropped.first == NULL:
        return
    error = dead_letter_dropped(to, runtime, context, dropped.first)
    if error is not None:
        log.error("a dead letter could not be delivered", actor=to._short_path, exc_info=error)


cdef void pop_one(Cell* cell, Dropped* dropped) noexcept nogil:
    """Pop the oldest message, if there is one; it may not be linked yet, or may just have been taken."""
    cdef bint is_message = False
    cdef Node* spent = NULL
    cdef Node* node = cell.head.pop(spent)
    while node != NULL and not is_message:
        is_message = not is_fence(node)
        keep(dropped, node, spent)
        if is_message:
            cell.limits.give_back(1)
            cell.limits.add_dropped(1, relaxed)
        else:
            node = cell.head.pop(spent)


cdef void keep(Dropped* dropped, Node* node, Node* spent) noexcept nogil:
    """Keep in the spent node what the popped one carries, which is the queue's dummy now."""
    assert holds(spent != NULL and (dropped.first == NULL) == (dropped.last == NULL))
    spent.kind = node.kind
    spent.flags = node.flags
    spent.tag = node.tag
    spent.first = node.first
    spent.second = node.second
    spent.set_next(NULL, relaxed)
    if dropped.last == NULL:
        dropped.first = spent
    else:
        dropped.last.set_next(spent, relaxed)
    dropped.last = spent


cdef void release(Cell* cell, Dropped* dropped) noexcept nogil:
    cdef int64_t due = cell.limits.popping.settle(1)  # what it was owned for is done
    assert holds(due >= 0)
    while due != 0:
        for _ in range(due):
            pop_one(cell, dropped)
        due = cell.limits.popping.settle(due)


cdef object dead_letter_dropped(Handle to, Runtime runtime, Context* context, Node* node):
    """Make dead letters of them all, but for fences. Return the last exception that came out of that, or None."""
    cdef Node* following
    cdef object raised = None
    while node != NULL:
        following = node.get_next(relaxed)
        stored = take_stored(node)
        context.nodes.give(node, to.cell.spare)
        node = following
        try:
            if stored.message is FENCE:
                to._take_fence(stored.reply_to)
                continue
            dead_letter(to, runtime, stored, DROPPED_OLDEST)
        except BaseException as error:
            raised = error
    return raised


# --- messages that nobody takes ------------------------------------------------------------------------


cdef void drop_all(Cell* cell) noexcept:
    """Drop the messages in a mailbox that is never looked into again: its manual system was dropped."""
    cdef Context* context
    cdef Node* spent = NULL
    cdef Node* following
    cdef Node* node = cell.head.pop(spent)
    if node == NULL and not cell.has_system():
        return
    context = current_context()
    while node != NULL:
        take_stored(node)
        context.nodes.give(spent, cell.spare)
        node = cell.head.pop(spent)
    node = cell.take_system()
    while node != NULL:
        following = node.get_next(relaxed)
        Py_XDECREF(<PyObject*>node.first)
        Py_XDECREF(<PyObject*>node.second)
        context.nodes.give(node, cell.spare)
        node = following
