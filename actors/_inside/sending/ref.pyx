"""Refs: the only handle that others hold on an actor."""

import types
from functools import partial

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t

from callboard._inside.answers.actor_context cimport ActorContext
from callboard._inside.answers.circles cimport circle
from callboard._inside.answers.sampling cimport mark_sample
from callboard._inside.answers.yielding cimport ends_burst, let_workers_run
from callboard._inside.sending.actor_cell cimport (
    ActorCell, await_node, carrying_cell, closed_cell, filled, forked_cell, is_only_watched, lonely_cell, native_cell,
    push, sampled_cell, slow_cell, stamp, task_cell,
)
from callboard._inside.sending.admission cimport admit_or_dead_letter, look_at, look_in
from callboard._inside.sending.dead_lettering cimport ADMITTED, FULL
from callboard._inside.sending.envelope cimport copied, to_ask, to_tell
from callboard._inside.sending.letter cimport FENCE, Carried, LastFence, Letter, copy_of, letter_of, sender_of
from callboard._inside.sending.overflow cimport Overflow, drop_all
from callboard._inside.sending.unsent cimport BEHIND, SENT, Unsent, is_awaited, wait_behind, wait_outside
from callboard._inside.sending.variables cimport current_variables
from callboard._inside.sending.waits_for cimport awaited_of, held_of, wait_in_words
from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport Kind, Node, relaxed, wants_answer
from callboard.scheduling.cell cimport Cell, recorded_cell
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.dispatching cimport make_ready

from callboard.core import checks
from callboard.rows.batches import iterator_over
from callboard.core.errors import AskDeadlock, CallboardError
from callboard.core.markup import table
from callboard.core.text import safe_repr
from callboard.core.threads.blocking import refuse_to_block, runs_event_loop

# tell_many() publishes this many messages at a time, so that the receiver can start meanwhile.
cdef int CHUNK = 256
# How many names of a path a text has. A path of a tree of thousands of levels is no help to anybody, and
# thousands of them, as when the tree stops, take seconds.
cdef int MOST_NAMES = 50


cdef inline void note_sent(ActorRef ref, Context* context, uint32_t messages) noexcept:
    if ends_burst(<ActorContext*>context, messages) and not ref.runtime.manual:
        let_workers_run(&ref.cell.tail)


cdef bint is_from_elsewhere(ActorRef ref, Context* context) noexcept:
    """Tell whether the thread's actor is of another system, whose actors have numbers of their own."""
    return context.current != NULL and (<ActorRef>context.current.owner).runtime is not ref.runtime


cdef void sample_all(ActorRef ref, Node* node, Node* last, Context* context) noexcept:
    """Make samples of some of a chain's messages, which the calling thread's actor is about to send."""
    cdef uint32_t every = ref.runtime.sampled_every
    if every == 0 or is_from_elsewhere(ref, context):
        return
    while True:
        if (<ActorContext*>context).sampler.takes(every):
            mark_sample(node, ref.cell.number, True, context)
        if node == last:
            return
        node = node.get_next(relaxed)


cdef str name_of(ActorRef ref):
    if ref.own_name is not None:
        return ref.own_name
    return f"{ref.recipe.cls.__name__}-{ref.cell.number}"


cdef str path_of(ActorRef ref, int most):
    """Return the names down to an actor; of more than `most`, if that is not 0, the last ones."""
    cdef list names = []
    while ref is not None and (most == 0 or len(names) < most):
        names.append(name_of(ref))
        ref = ref.parent
    names.append("" if ref is None else "...")
    names.reverse()
    return "/".join(names)


cdef object no_system(actor):
    """Return the error for an object that was not spawned as an actor."""
    return CallboardError(
        f"this {type(actor).__name__} was made by calling the class; "
        "an actor that lives in a system is made by spawn()"
    )


cdef inline object sender_here():
    """Return the ref of the actor that the calling thread works for; None if it works for none."""
    cdef Cell* current = current_context().current
    return <object>current.owner if current != NULL else None


cdef inline int refuse_void(Future in_work) except -1:
    """End a conversation without end, which this ask, in work, is part of (circles.pyx)."""
    if in_work.flag.is_set() and isinstance(in_work.error, AskDeadlock):
        raise AskDeadlock(str(in_work.error))
    return 0


def _stop_at(ActorRef ref, Future fence):
    if ref.is_alive:
        ref.send_system(SystemKind.stop, None, None)


# Trashcan: a ref holds its parent's, and so on, and all of a deep tree's may go at once.
@cython.trashcan(True)
cdef class ActorRef(Waiter):
    """A handle on an actor. Safe in every thread, hashable, equal to itself only.

    Refs cannot be pickled: they mean something in their own process only. A copy of one is itself.
    """

    def __dealloc__(self):
        cdef ActorCell* cell = <ActorCell*>self.cell
        if cell != NULL:
            drop_all(cell)
            Py_XDECREF(<PyObject*>cell.variables)
            del cell

    # --- sending ------------------------------------------------------------------------------------

    @cython.nonecheck(False)
    @cython.always_allow_keywords(False)  # one argument, passed as such: saves a fifth of the call
    def tell(self, message, /):
        """Send `message`; return at once, before it is handled.

        Messages of one sender arrive in the order in which it sent them. A message to a stopped
        actor becomes a dead letter. With a bounded mailbox the mailbox's overflow policy decides
        what happens when it is full, and may raise MailboxFull.
        """
        cdef Context* context = current_context()
        cdef Cell* current = context.current
        cdef PyObject* sender = NULL
        if current != NULL:
            sender = <PyObject*>current.owner
        self.send(to_tell(<PyObject*>message, sender), context)

    @cython.nonecheck(False)
    def tell_many(self, messages):
        """Send all of `messages`, an iterable, in its order; cheaper than as many tell().

        If the iterable raises, the messages before that are sent, and the exception goes on.
        """
        cdef Context* context = current_context()
        cdef Cell* cell = self.cell
        cdef Cell* current = context.current
        cdef PyObject* sender = NULL
        cdef Node* node
        cdef Node* first = NULL
        cdef Node* last = NULL
        cdef int count = 0
        if current != NULL:
            sender = <PyObject*>current.owner
        source = iterator_over("tell_many()", messages, "messages")
        if not cell.has(lonely_cell):
            try:
                for message in source:
                    node = filled(context.nodes.take(cell.spare), to_tell(<PyObject*>message, sender))
                    if first == NULL:
                        first = node
                    else:
                        last.set_next(node, relaxed)
                    last = node
                    count += 1
                    if count == CHUNK:
                        if cell.has(sampled_cell):
                            sample_all(self, first, last, context)
                        if cell.tail.push_chain(first, last):
                            self.wake(context)
                        first = NULL
                        count = 0
                        note_sent(self, context, CHUNK)
                        if cell.has(lonely_cell):  # it has stopped, and would make dead letters for as long
                            break
                else:
                    return
            finally:
                if first != NULL and cell.has(sampled_cell):
                    sample_all(self, first, last, context)
                if first != NULL and cell.tail.push_chain(first, last):
                    self.wake(context)
        for message in source:
            self.send_slowly(to_tell(<PyObject*>message, sender), context)

    @cython.nonecheck(False)
    @cython.always_allow_keywords(False)
    def atell(self, message, /):
        """Send `message` now, or as soon as a full mailbox has room. Return a future that is done then.

        Like tell(), but nobody is blocked. The future fails with MailboxFull where tell() would raise it after a wait.
        Messages that wait keep the order of the calls; one of tell() may overtake them. A cancelled `await` takes the
        message back, unless it was sent just before.
        """
        cdef Context* context = current_context()
        cdef Cell* current = context.current
        cdef PyObject* sender = NULL
        if current != NULL:
            sender = <PyObject*>current.owner
        if self.cell.has(slow_cell):
            return self.asend(to_tell(<PyObject*>message, sender), context)
        if push(self.cell, context, to_tell(<PyObject*>message, sender)):
            self.wake(context)
        note_sent(self, context, 1)
        return SENT

    def atell_many(self, messages):
        """Send all of `messages` in their order, as atell() does each. Return one future, of all.

        If one is refused, those behind it are not sent.
        """
        cdef Future told = SENT
        source = iterator_over("atell_many()", messages, "messages")
        if self.cell.limits == NULL:
            self.tell_many(source)
            return told
        for message in source:
            if isinstance(told, Unsent):
                variables = current_variables() if self.cell.has(carrying_cell) else None
                if wait_behind(<Unsent>told, letter_of(message, sender_here(), None), variables):
                    continue
                if told.flag.is_set() and told.error is not None:
                    break
            told = self.atell(message)
        return told

    def ask(self, message, timeout=None):
        """Send `message` and return a Future of the answer, which is the return value of `receive`.

        With a `timeout` in seconds the future fails with AskTimeout if no answer came. It fails at
        once with ActorStopped if the actor is stopped, and with the handler's exception if that
        fails.
        """
        cdef Context* context = current_context()
        cdef ActorCell* current = <ActorCell*>context.current
        cdef Future future = Future.__new__(Future)
        cdef double due = 0
        future.target = self
        if current != NULL:
            future.asker = <object>current.owner
            if current.in_work != NULL and current.in_work.reply_to != NULL:
                refuse_void(<Future>current.in_work.reply_to)
        if timeout is not None:
            due = self.runtime.timers.due_after(timeout)
        self.send(to_ask(<PyObject*>message, <PyObject*>future), context)
        if timeout is not None:  # the receiver's worker wakes up meanwhile
            self.runtime.timers.note(future, due, timeout)
        return future

    def pipe(self, receiver):
        """Have this actor told each value of a channel, and return the ref of the task that does so.

        `receiver` is the task's from now on. Where the mailbox has senders wait for room, the channel becomes full
        behind it. The task ends with the channel, or when it finds the actor stopped.
        """
        if not hasattr(type(receiver), "_pour_into"):
            raise TypeError(f"pipe() wants the receiver of a channel, not {safe_repr(receiver)}")
        return receiver._pour_into(self)

    def stop(self, *, after_queue=False):
        """Stop the actor after the message in work; messages behind it become dead letters.

        With `after_queue` it handles the messages first that wait by now, and only later ones become dead letters.
        With a PriorityMailbox it stops when nothing waits. Raises TypeError for `after_queue` of a task.
        """
        cdef Future fence
        if after_queue is False:  # first of all: at the interpreter's end there may be no `checks`
            self.send_system(SystemKind.stop, None, None)
        elif checks.flag("after_queue", after_queue) and self.is_alive:
            fence = self.send_fence(LastFence)
            if not fence.attach(partial(_stop_at, self)):
                _stop_at(self, fence)

    @cython.nonecheck(False)
    cdef inline int send(self, Envelope envelope, Context* context) except -1:
        if self.cell.has(slow_cell):
            return self.send_slowly(copied(envelope), context)
        if push(self.cell, context, envelope):
            self.wake(context)
        note_sent(self, context, 1)
        return 0

    cdef int send_slowly(self, Envelope envelope, Context* context) except -1:
        """Send to an actor that is stopped, or has limits, or wants its senders' variables."""
        if is_only_watched(self.cell):
            if self.cell.limits != NULL:
                self.cell.limits.exceed(1)
            self.push_watched(envelope, context)
            note_sent(self, context, 1)
            return 0
        cdef Fate found = self.take_room(context)
        if found != ADMITTED and not self.is_admitted(found, &envelope, context):
            return 0
        variables = current_variables() if self.cell.has(carrying_cell) else None
        self.push_with(variables, envelope, context)
        note_sent(self, context, 1)
        return 0

    cdef Future asend(self, Envelope envelope, Context* context):
        """Send, or have the message wait outside until there is room."""
        cdef Fate found
        cdef bint on_event_loop = (<ActorContext*>context).on_event_loop
        if self.is_waited_for(context) and not on_event_loop:
            found = FULL if is_awaited(self) else look_in(self.cell, False)
            if found == FULL:
                return self.have_wait(&envelope)
            if found == ADMITTED:
                self.push_with(current_variables() if self.cell.has(carrying_cell) else None, envelope, context)
                note_sent(self, context, 1)
                return SENT
        self.send_slowly(copied(envelope), context)
        if on_event_loop and context.current != NULL and (<ActorRef>context.current.owner).extra.outgoing is not None:
            return BEHIND
        return SENT

    cdef Unsent have_wait(self, Envelope* envelope):
        variables = current_variables() if self.cell.has(carrying_cell) else None
        return wait_outside(self, self.runtime.timers, copy_of(envelope), variables)

    def _deliver(self, Letter letter, variables, Fate found):
        """Send a message that waited for room and has it, or make a dead letter of it."""
        if found == ADMITTED:
            self.push_letter(letter, variables, current_context())
        else:
            admit_or_dead_letter(self, self.runtime, found, letter, current_context())

    cdef Fate take_room(self, Context* context) noexcept:
        """Take room, if there is some. There is none for an actor whose earlier messages wait for some."""
        if (<ActorContext*>context).on_event_loop and self.cell.limits != NULL and context.current != NULL:
            if (<ActorRef>context.current.owner).extra.outgoing is not None and self.is_waited_for(context):
                return FULL
        return look_in(self.cell, False)

    cdef bint is_waited_for(self, Context* context) noexcept:
        """Tell whether an actor on the event loop waits for room here, if there is none."""
        cdef void* overflow = (<ActorCell*>self.cell).overflow
        if self.cell.has(closed_cell | forked_cell) or overflow == NULL or context.current == self.cell:
            return False
        return (<Overflow>overflow).waits

    cdef bint is_admitted(self, Fate found, Envelope* envelope, Context* context) except -1:
        """Wait for room, or do as the overflow policy says. False: do not send the message."""
        if found == FULL and (<ActorContext*>context).on_event_loop and self.is_waited_for(context):
            if context.current == NULL:  # a callback, or a task that an actor left behind: nobody could wait
                self.cell.limits.exceed(1)
                return True
            variables = current_variables() if self.cell.has(carrying_cell) else None
            sender = <ActorRef>context.current.owner
            sender.extra.errand.have_wait(self, copy_of(envelope), variables)
            return False
        if found == FULL and self.is_waited_for(context) and runs_event_loop() and not self.is_run_here():
            if envelope.reply_to != NULL:
                self.have_wait(envelope)
                return False
            what = f"tell() to the full mailbox of {self._short_path}"
            refuse_to_block(what, "await atell() or atell_many()")
        return admit_or_dead_letter(self, self.runtime, found, copy_of(envelope), context)

    cdef bint is_run_here(self) except -1:
        """Tell whether a wait in this thread would run the actor: its system is manual."""
        system = self.runtime.system if self.runtime.manual else None
        return system is not None and system.is_run_here

    def _tell_past_capacity(self, message, variables=None, timer=None):
        """Send without regard to the mailbox's capacity: messages with which the runtime itself must not wait.

        `variables` is the context for an actor that wants its senders'. `timer` is the actor's own whose message it
        is, if that has a key.
        """
        cdef Context* context = current_context()
        cdef Carried carried
        cdef Envelope envelope = to_tell(<PyObject*>message, NULL)
        cdef Fate found = look_in(self.cell, True)
        if found != ADMITTED and not self.is_admitted(found, &envelope, context):
            return
        if variables is not None:
            variables = variables.copy() if self.cell.has(carrying_cell) else None
        if timer is not None or self.intake is not None and self.intake.knows_timers:
            carried = Carried.__new__(Carried)
            carried.timer = timer
            carried.variables = variables
            carried.is_of_timer = True
            envelope.sender = <PyObject*>carried
            variables = None
        self.push_with(variables, envelope, context)

    def _fence(self):
        """Return a Future that is done when all messages sent before have been handled, or are dead.

        It is a fence that goes through the mailbox in its turn, that takes no room, and that no handler sees. It fails
        if the actor stops. With a PriorityMailbox it is done when nothing waits. It is not dropped.
        """
        return self.send_fence(Future)

    cdef void put_back(self, list letters) noexcept:
        """Have letters handled next, in their order, before all others."""
        assert holds(self.phase != CLOSED and letters)
        self.extras().replay_first(letters)
        self.detour = True

    def _take_fence(self, fence):
        """Pass a fence when the message in work is over: senders have dropped all that was before it."""
        self.send_system(SystemKind.fence, fence, None)

    @property
    def _keeps_messages(self):
        """Tell whether a full mailbox, if it can be full, has senders wait, and drops nothing."""
        cdef void* overflow = (<ActorCell*>self.cell).overflow
        return overflow == NULL or (<Overflow>overflow).waits

    cdef Future send_fence(self, type kind):
        cdef Context* context = current_context()
        cdef Future future = <Future>kind.__new__(kind)
        cdef Envelope envelope = to_ask(<PyObject*>FENCE, <PyObject*>future)
        cdef Fate found
        cdef Node* node
        future.target = self
        found = look_at(self.cell)
        if found != ADMITTED and not self.is_admitted(found, &envelope, context):
            return future
        node = filled(context.nodes.take(self.cell.spare), envelope)
        node.flags = wants_answer  # where a native actor looks
        if self.cell.tail.push(node):
            self.wake(context)
        return future

    @property
    def _room(self):
        """How many messages find room in the mailbox just now; None where nobody waits for room."""
        cdef void* overflow = (<ActorCell*>self.cell).overflow
        if overflow == NULL or not (<Overflow>overflow).waits:
            return None
        return max(0, self.cell.limits.capacity - self.cell.limits.count())

    cdef int push_with(self, object variables, Envelope envelope, Context* context) except -1:
        """Push a message that has its room, together with `variables`, a Context or None."""
        cdef Carried carried
        assert holds(variables is None or self.cell.has(carrying_cell))
        if variables is not None:
            if envelope.reply_to != NULL:
                (<Future>envelope.reply_to).variables = variables
            else:
                carried = Carried.__new__(Carried)
                carried.sender = <object>envelope.sender if envelope.sender != NULL else None
                carried.variables = variables
                envelope.sender = <PyObject*>carried
        self.push_watched(envelope, context)
        return 0

    cdef inline Node* take_node(self, Context* context) except NULL:
        """Take a node for a message that has its room, which is given back if this raises MemoryError."""
        cdef Node* node = context.nodes.try_take(self.cell.spare)
        if node == NULL:
            if self.cell.limits != NULL:
                self.cell.limits.take_back(1)
            raise MemoryError
        return node

    cdef inline int push_watched(self, Envelope envelope, Context* context) except -1:
        """Push a message that has its room, which may be stamped, and be a sample."""
        cdef Node* node = filled(self.take_node(context), envelope)
        cdef uint32_t every
        if self.cell.limits != NULL:
            stamp(node, self.cell, context)
        if self.cell.has(sampled_cell):
            every = self.runtime.sampled_every
            if every != 0 and (<ActorContext*>context).sampler.takes(every):
                self.make_sample(node, &envelope, context)
        if self.cell.tail.push(node):
            self.wake(context)
        return 0

    cdef void make_sample(self, Node* node, Envelope* envelope, Context* context) noexcept:
        """Make a trace's sample of a message that is about to be pushed."""
        cdef bint is_own = context.current != NULL and sender_of(envelope) is <object>context.current.owner
        if not is_from_elsewhere(self, context):
            mark_sample(node, self.cell.number, is_own, context)

    def _be_sampled(self, is_sampled):
        """Have traces show some of the messages, from now on, or no more. Native actors have none that they could."""
        if not is_sampled:
            self.cell.clear(sampled_cell)
        elif self.cell.has(recorded_cell) and not self.cell.has(native_cell | task_cell):
            self.cell.set(sampled_cell)

    cdef int push_letter(self, Letter letter, object variables, Context* context) except -1:
        """Push a message that waited for its room outside, and has it now."""
        self.push_with(variables, letter.lend(), context)
        if letter.reply_to is not None and letter.reply_to.was_withdrawn():
            self.withdraw(letter.reply_to)  # it was no message of the mailbox when it was cancelled
        return 0

    @cython.nonecheck(False)
    cdef inline void wake(self, Context* context) noexcept:
        if self.cell.has(closed_cell):
            self.wake_closed(context)
        else:
            make_ready(self.cell, context)

    cdef void wake_closed(self, Context* context) noexcept:
        """Make a closed actor ready once again, to make dead letters of late messages."""
        Py_INCREF(self)  # nobody else keeps it; its dispatch gives the reference back
        make_ready(self.cell, context)
        if self.runtime.closing:
            self.runtime.team.sweep_if_over()

    cdef void send_system(self, SystemKind kind, object first, object second) noexcept:
        """Push a system message, which overtakes the messages in the mailbox."""
        cdef Context* context = current_context()
        cdef Node* node = await_node(self.cell, context)
        node.kind = <Kind>kind
        Py_INCREF(first)
        Py_INCREF(second)
        node.first = <void*>first
        node.second = <void*>second
        if self.cell.push_system(node):
            self.wake(context)

    cdef Future future_of(self, SystemKind kind, bint is_rest):
        """Return a future that the actor completes at a system message."""
        cdef Future future = Future.__new__(Future)
        self.runtime.refuse_fork()
        future.target = self
        future.is_rest = is_rest
        if kind == SystemKind.watch and self.phase == CLOSED:
            future.complete(self.runtime.dead_letters.end_of(self), None)
        elif kind == SystemKind.ready and self.phase == SUSPENDED and not self.starting:
            future.complete(self, None)  # it may wait for an actor that would wait for this
        else:
            self.send_system(kind, future, None)
        return future

    cdef void mark_closed(self) noexcept:
        """Have senders know from now on that the actor handles no more messages."""
        assert holds(not self.cell.has(closed_cell))  # an actor ends once
        self.cell.set(closed_cell)
        self.cell.clear(recorded_cell)
        self.phase = CLOSED

    # --- being -------------------------------------------------------------------------------------

    @property
    def is_alive(self):
        """False from the moment when the actor begins to stop."""
        return self.phase < STOPPING

    @property
    def ready(self):
        """A Future of the actor's start: it answers with this ref when `__init__` and `on_start` are through.

        If the actor fails to start it fails with ActorStopped, whose `__cause__` is the error; an ActorFailed with its
        traceback if the actor had ended before. Each one is new.
        """
        return self.future_of(SystemKind.ready, False)

    @property
    def ended(self):
        """A Future that answers with an ActorEnd, which says how, when the actor has ended; at once if it has.

        It does not fail because the actor failed, and `drain()` does not wait for it. Each one is new, and is
        kept until the actor ends. So keep one if you look often.
        """
        return self.future_of(SystemKind.watch, True)

    @property
    def _ending(self):
        """How it ended, or would now, if no failure is the reason."""
        return self.ending if self.ending is not None else self.runtime.ending()

    @property
    def name(self):
        """The name given at spawn, or the class's name and the actor's number."""
        return name_of(self)

    @property
    def path(self):
        """The names from the top-level actor down to this one: `/shop/cart-7`."""
        return path_of(self, 0)

    @property
    def _short_path(self):
        """The path as errors and logs have it: only the last names for an actor in a deep tree."""
        return path_of(self, MOST_NAMES)

    @property
    def actor_class(self):
        """The class that the actor was spawned from."""
        return self.recipe.cls

    @property
    def system(self):
        """The actor's system; None if nobody refers to it any more."""
        return self.runtime.system

    @property
    def children(self):
        """The actor's children, in the order of their spawning."""
        return list(self.children_of) if self.children_of is not None else []

    @property
    def awaits(self):
        """The ref whose answer the actor waits for, in the middle of a message; or None."""
        awaited = self.awaited()
        return (<Future>awaited).target if awaited is not None else None

    @property
    def owes(self):
        """How many asks wait for futures that the actor returned as their answers."""
        cdef Extra extra = self.extra_now()
        return len(extra.owed) if extra is not None and extra.owed is not None else 0

    @property
    def _is_abandoned(self):
        """True if nobody will ever run the actor: its manual system was dropped."""
        return self.runtime.manual and self.runtime.system is None

    @property
    def is_waiting(self):
        """True while the actor is in the middle of an `async def receive`, or backs off."""
        cdef Extra extra = self.extra_now()
        if extra is not None and (extra.flights or extra.leaving is not None):
            return True
        return self.phase == SUSPENDED or self.phase == RESTARTING

    @property
    def waits_for(self):
        """Say in words what the actor waits for, such as "a message" or "an answer of /shop/cart".

        None if it has something to do, or has ended. It may be a little old, as the actor goes on meanwhile.
        """
        return self.waits()[1]

    @property
    def _step_since(self):
        """When the step of its code began that the event loop runs just now, in monotonic ns; 0 if it runs none."""
        cdef Extra extra = self.extra_now()
        return 0 if extra is None else extra.step_since

    @property
    def _ends(self):
        """The figures of the ends of channels that the actor has, for statistics."""
        return [figures for held in held_of(self.extra_now()) if (figures := held._figures()) is not None]

    cdef tuple waits(self):
        return wait_in_words(self.cell.tail.is_idle(), self.phase, self.recipe.event_loop, self.extra_now())

    @property
    def is_at_rest(self):
        """True while the actor waits for input in the middle of its work: that keeps no system from idleness."""
        awaited = self.awaited()
        return awaited is not None and (<Future>awaited).is_rest

    def _forbid(self):
        """Make every further use an error: this is a copy in a forked process."""
        self.cell.set(forked_cell)
        if self.extra is not None and self.extra.held is not None:
            for held in self.extra.held:
                held._forbid()

    __class_getitem__ = classmethod(types.GenericAlias)

    def _repr_html_(self):
        """Show the actor's figures, for notebooks."""
        queue = self.queue_length
        return table(
            ("actor", "class", "messages", "queue", "waits for"),
            [(self._short_path, self.actor_class.__qualname__, self.messages, "-" if queue is None else queue,
              self.waits_for or ("-" if self.is_alive else "nothing: it has ended"))],
            (0, 1, 4),
        )

    def __repr__(self):
        return f"<{type(self).__name__} {self._short_path}{'' if self.is_alive else ', stopped'}>"

    def __copy__(self):
        return self  # there is one actor, whatever holds its ref

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        raise TypeError(
            f"{self!r} cannot be pickled: it means something in its own process only. "
            "In Spark, spawn the actor in build() instead of capturing its ref"
        )

    cdef Extra extras(self):
        if self.extra is None:
            with cython.critical_section(self):
                self.extra = Extra.__new__(Extra)
        return self.extra

    cdef Extra extra_now(self):
        # In any thread, while the actor goes on: a reader of a field must own it until it has a reference of its own.
        with cython.critical_section(self):
            extra = self.extra
        return extra

    cdef object awaited(self):
        return awaited_of(self.extra_now())

    cdef object note_wait(self, Future awaited):
        """Note what the actor waits for elsewhere than in its dispatch. Return None, or the AskDeadlock that
        this closes, with nothing noted."""
        cdef Extra extra = self.extras()
        with cython.critical_section(extra):  # others look for cycles; see awaited()
            extra.awaited_there = awaited
        if awaited is None:
            return None
        error = circle(self, None, awaited)
        if error is not None:
            self.note_wait(None)
        return error

    cdef void note_full(self, object to) noexcept:
        cdef Extra extra = self.extras()
        with cython.critical_section(extra):
            extra.full = to

    cdef void withdraw(self, Future future) noexcept:
        if not (self.recipe.native or self.phase == CLOSED or self.cell.has(forked_cell)):
            self.send_system(SystemKind.cancel, future, None)

    cdef void resume(self, Future future) noexcept:
        self.send_system(SystemKind.resume, future, None)

    cdef int wait_for(self, Future future, object timeout) except -1:
        error = self.note_wait(future)
        if error is not None:
            raise error
        try:
            future.wait(timeout)
        finally:
            self.note_wait(None)
        return 0
