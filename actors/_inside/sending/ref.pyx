"""Refs: what others hold of an actor, to send it messages."""

from functools import partial

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF, Py_XDECREF
from libc.stdint cimport uint32_t

from callboard._inside.answers.thread_locals cimport (
    ActorContext, ends_burst, let_workers_run, mark_sample, mark_samples,
)
from callboard._inside.sending.actor_cell cimport (
    ActorCell, await_node, carrying_cell, closed_cell, filled, forked_cell, is_only_watched, no_chain_cell, push,
    sampled_cell, slow_cell, stamp,
)
from callboard._inside.sending.envelope cimport copied, to_ask, to_tell
from callboard._inside.sending.letter cimport (
    ADMITTED, FENCE, FULL, Carried, LastFence, Letter, copy_of, letter_of, sender_of,
)
from callboard._inside.sending.overflow cimport admit_or_dead_letter, drop_all, look_at, look_in
from callboard._inside.sending.pending_sends cimport BEHIND, SENT, Unsent, is_awaited, wait_behind, wait_outside
from callboard._inside.sending.variables cimport current_variables
from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport Kind, Node, relaxed, wants_answer
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.dispatching cimport make_ready

from callboard.core import checks
from callboard.rows.batches import iterator_over
from callboard.core.errors import AskDeadlock, CallboardError
from callboard.core.text import safe_repr
from callboard.core.threads.blocking import refuse_to_block, runs_event_loop

# tell_many() publishes this many messages at a time, so that the receiver can start meanwhile.
cdef int CHUNK = 256


cdef inline void note_sent(ActorRef ref, Context* context, uint32_t messages) noexcept:
    if ends_burst(<ActorContext*>context, messages) and not ref.runtime.manual:
        let_workers_run(&ref.cell.tail)


cdef bint is_from_elsewhere(ActorRef ref, Context* context) noexcept:
    """Tell whether the thread's actor is of another system, whose actors have numbers of their own."""
    return context.current != NULL and (<ActorRef>context.current.owner).runtime is not ref.runtime


cdef void sample_all(ActorRef ref, Node* node, Node* last, Context* context) noexcept:
    """Make samples of some of a chain's messages, which the calling thread's actor is about to send."""
    cdef uint32_t every = ref.runtime.sampled_every
    if every != 0 and not is_from_elsewhere(ref, context):
        mark_samples(node, last, ref.cell.number, every, <ActorContext*>context)


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
    """Raise AskDeadlock if the ask in work is part of a conversation without end (wait_graph.pyx)."""
    if in_work.flag.is_set() and isinstance(in_work.error, AskDeadlock):
        raise AskDeadlock(str(in_work.error))
    return 0


def _stop_at(ActorRef ref, Future fence):
    if ref.is_alive:
        ref.send_system(SystemKind.stop, None, None)


# Trashcan: a ref holds its parent's, and so on, and all of a deep tree's may go at once.
@cython.trashcan(True)
cdef class ActorRef(ActorHandle):
    """A handle on an actor. Safe in every thread, hashable, equal to itself only.

    Refs cannot be pickled: they mean something in their own process only. A copy of one is itself.
    """

    def __dealloc__(self):
        cdef ActorCell* cell = <ActorCell*>self.cell
        if cell != NULL:
            drop_all(cell)
            Py_XDECREF(<PyObject*>cell.variables)
            del cell

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
        if not cell.has(no_chain_cell):
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
                        if cell.has(no_chain_cell):  # it has stopped, and would make dead letters for as long
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
            raise TypeError(f"pipe() expects the receiver of a channel, got {safe_repr(receiver)}")
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
        """Take room, if there is any. There is none while earlier messages of the sender wait for some."""
        if (<ActorContext*>context).on_event_loop and self.cell.limits != NULL and context.current != NULL:
            if (<ActorRef>context.current.owner).extra.outgoing is not None and self.is_waited_for(context):
                return FULL
        return look_in(self.cell, False)

    cdef bint is_admitted(self, Fate found, Envelope* envelope, Context* context) except -1:
        """Wait for room, or do as the overflow policy says. False: do not send the message."""
        if found == FULL and (<ActorContext*>context).on_event_loop and self.is_waited_for(context):
            if context.current == NULL:  # a callback, or a task that an actor left behind: nobody could wait
                self.cell.limits.exceed(1)
                return True
            variables = current_variables() if self.cell.has(carrying_cell) else None
            sender = <ActorRef>context.current.owner
            sender.extra.loop_task.have_wait(self, copy_of(envelope), variables)
            return False
        if found == FULL and self.is_waited_for(context) and runs_event_loop() and not self.is_run_here():
            if envelope.reply_to != NULL:
                self.have_wait(envelope)
                return False
            what = f"tell() to the full mailbox of {self._short_path}"
            refuse_to_block(what, "await atell() or atell_many()")
        return admit_or_dead_letter(self, self.runtime, found, copy_of(envelope), context)

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

    cdef void withdraw(self, object future) noexcept:
        if not (self.recipe.native or self.phase == CLOSED or self.cell.has(forked_cell)):
            self.send_system(SystemKind.cancel, future, None)

    cdef void resume(self, object future) noexcept:
        self.send_system(SystemKind.resume, future, None)
