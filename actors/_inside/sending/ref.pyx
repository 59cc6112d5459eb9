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
from callboard._inside.sending.overflow cimport admit_or_dead_letter, drop_all, look_at, look_in
from callboard._inside.sending.pending_sends cimport BEHIND, SENT, Unsent, is_awaited, wait_behind, wait_outside
from callboard._inside.sending.stored_envelope cimport (
    ADMITTED, FENCE, FULL, Carried, LastFence, StoredEnvelope, copy_of, sender_of, stored_envelope,
)
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

# tell_many() publishes this many messages at a time, so that the receiver can start early.
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
    """Raise AskDeadlock if the ask in work is part of a conversation without end (pending_asks.pyx)."""
    if in_work.flag.is_set() and isinstance(in_work.error, AskDeadlock):
        raise AskDeadlock(str(in_work.error))
    return 0


def _stop_at(ActorRef ref, Future fence):
    if ref.is_alive:
        ref.send_system(SystemKind.stop, None, None)


# Trashcan: a ref holds its parent's, and so on, and all of a deep tree's may go at once.
@cython.trashcan(True)
cdef class ActorRef(ActorHandle):
    """A handle to an actor. Thread-safe, hashable, and equal only to itself.

    Refs cannot be pickled, because they are valid only in their own process. Copying a ref returns the same ref.
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
        """Send `message` and return immediately, before it is handled.

        Messages from one sender arrive in the order in which they were sent. A message to a stopped actor becomes a
        dead letter. If a bounded mailbox is full, its overflow policy decides what happens, and may raise MailboxFull.
        """
        cdef Context* context = current_context()
        cdef Cell* current = context.current
        cdef PyObject* sender = NULL
        if current != NULL:
            sender = <PyObject*>current.owner
        self.send(to_tell(<PyObject*>message, sender), context)

    @cython.nonecheck(False)
    def tell_many(self, messages):
        """Send all of `messages`, an iterable, in order. Cheaper than calling tell() for each.

        If the iterable raises, the messages before that are sent, and the exception propagates.
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
        """Send `message` now, or as soon as a full mailbox has room. Return a future that is done once it is sent.

        Like tell(), but nothing blocks: the future fails with MailboxFull where tell() would raise it after a wait.
        Waiting messages keep the order of the calls, but a tell() may overtake them. Cancelling the `await` withdraws
        the message, unless it was sent just before.
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
        """Send all of `messages` in order, each like atell(). Return one future for all of them.

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
                if wait_behind(<Unsent>told, stored_envelope(message, sender_here(), None), variables):
                    continue
                if told.flag.is_set() and told.error is not None:
                    break
            told = self.atell(message)
        return told

    def ask(self, message, timeout=None):
        """Send `message` and return a Future of the answer, which is the return value of `receive`.

        The future fails with the handler's exception, and immediately with ActorStopped if the actor has stopped.

        Args:
            timeout: The number of seconds without an answer after which the future fails with AskTimeout.
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
        if timeout is not None:  # while the receiver's worker wakes up
            self.runtime.timers.note(future, due, timeout)
        return future

    def pipe(self, receiver):
        """Spawn a task that tells this actor each value of a channel, and return the task's ref.

        The task takes over `receiver`. If a full mailbox makes senders wait, the channel fills up behind it. The task
        ends with the channel, or when it finds the actor stopped.
        """
        if not hasattr(type(receiver), "_pipe_to"):
            raise TypeError(f"pipe() expects the receiver of a channel, got {safe_repr(receiver)}")
        return receiver._pipe_to(self)

    def stop(self, *, after_queue=False):
        """Stop the actor after the current message; the messages behind it become dead letters.

        With `after_queue`, the actor first handles the messages that are waiting now; only later ones become dead
        letters. With a PriorityMailbox it stops once no message waits. Raises TypeError for `after_queue` of a task.
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

    def _deliver(self, StoredEnvelope stored, variables, Fate found):
        """Send a message that waited for room and has it, or make a dead letter of it."""
        if found == ADMITTED:
            self.push_stored(stored, variables, current_context())
        else:
            admit_or_dead_letter(self, self.runtime, found, stored, current_context())

    cdef Fate take_room(self, Context* context) noexcept:
        """Take room, if there is any, and no earlier messages of the sender wait for it."""
        if (<ActorContext*>context).on_event_loop and self.cell.limits != NULL and context.current != NULL:
            if (<ActorRef>context.current.owner).extra.outgoing is not None and self.is_waited_for(context):
                return FULL
        return look_in(self.cell, False)

    cdef bint is_admitted(self, Fate found, Envelope* envelope, Context* context) except -1:
        """Wait for room, or do as the overflow policy says. False: do not send the message."""
        if found == FULL and (<ActorContext*>context).on_event_loop and self.is_waited_for(context):
            if context.current == NULL:  # a callback, or a task that an actor left behind: neither could wait
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

    cdef void put_back(self, list envelopes) noexcept:
        """Have envelopes handled next, in their order, before all others."""
        assert holds(self.phase != CLOSED and envelopes)
        self.extras().replay_first(envelopes)
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

    cdef int push_stored(self, StoredEnvelope stored, object variables, Context* context) except -1:
        """Push a message that waited for its room outside, and has it now."""
        self.push_with(variables, stored.lend(), context)
        if stored.reply_to is not None and stored.reply_to.was_withdrawn():
            self.withdraw(stored.reply_to)  # it was no message of the mailbox when it was cancelled
        return 0

    @cython.nonecheck(False)
    cdef inline void wake(self, Context* context) noexcept:
        if self.cell.has(closed_cell):
            self.wake_closed(context)
        else:
            make_ready(self.cell, context)

    cdef void wake_closed(self, Context* context) noexcept:
        """Make a closed actor ready once again, to make dead letters of late messages."""
        Py_INCREF(self)  # this reference keeps it, and its dispatch gives it back
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
        """A Future that answers with this ref once the actor's `__init__` and `on_start` have completed.

        If the actor fails to start, the future fails with ActorStopped, whose `__cause__` is the error; if the actor
        had already ended, an ActorFailed with its traceback. Each access makes a new future.
        """
        return self.future_of(SystemKind.ready, False)

    @property
    def ended(self):
        """A Future that answers with an ActorEnd, which says how the actor ended; immediately if it already has.

        The future does not fail because the actor failed, and `drain()` does not wait for it. Each access makes a new
        future, which is kept until the actor ends. So keep one if you check often.
        """
        return self.future_of(SystemKind.watch, True)

    cdef void withdraw(self, object future) noexcept:
        if not (self.recipe.native or self.phase == CLOSED or self.cell.has(forked_cell)):
            self.send_system(SystemKind.cancel, future, None)

    cdef void resume(self, object future) noexcept:
        self.send_system(SystemKind.resume, future, None)
