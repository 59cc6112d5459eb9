"""Refs: the only handle that others hold on an actor."""

import types

cimport cython
from libc.stdint cimport int64_t, uint32_t
from cpython.object cimport PyObject
from cpython.ref cimport Py_INCREF

from callboard._inside.answers.future cimport Future
from callboard._inside.sending.overflow cimport make_room
from callboard.core.clock cimport monotonic_ns
from callboard.core.node cimport Kind, Node, relax, relaxed
from callboard.scheduling.cell cimport (
    Cell, Context, carrying_cell, closed_cell, forked_cell, limited, make_ready, slow_cell,
)
from callboard.scheduling.context cimport current_context
from callboard.scheduling.handle cimport Handle
from callboard.scheduling.worker cimport PyThreadState

from callboard.core.errors import ActorStopped, AskCycle, CallboardError, ForkedSystem
from callboard.core.text import safe_repr

cdef extern from "Python.h":
    void INCREF "Py_INCREF" (PyObject*)
    void XDECREF "Py_XDECREF" (PyObject*)
    PyThreadState* PyThreadState_Get()
    object PyContext_CopyCurrent()

cdef extern from "sched.h" nogil:
    int sched_yield()

# tell_many() publishes this many messages at a time, so that the receiver can start meanwhile.
cdef int CHUNK = 256
# After this many messages a thread outside the workers lets them run. A worker that wants the
# interpreter gets it only after the switch interval, in which one thread can send 100,000 messages:
# their nodes leave the caches, and each costs three times as much. Waiting is bounded.
cdef uint32_t BURST = 4096
cdef int64_t LONGEST_TURN_NS = 2_000_000


cdef void let_workers_run(ActorRef ref, Context* context) noexcept:
    """Release the interpreter until the receiver has nothing left to do, or its turn is over."""
    cdef Cell* cell = ref.cell
    cdef int64_t end
    cdef int _
    context.sent = 0
    if ref.runtime.manual:
        return
    with nogil:
        end = monotonic_ns() + LONGEST_TURN_NS
        while not cell.tail.is_idle() and monotonic_ns() < end:
            for _ in range(64):
                relax()
            sched_yield()


cdef object no_system(actor):
    """The error for an actor that is none: nobody spawned it."""
    return CallboardError(
        f"this {type(actor).__name__} was made by calling the class; "
        "an actor that lives in a system is made by spawn()"
    )


cdef inline int refuse_void(Future in_work) except -1:
    """End a conversation without end: this ask, in work, was found to be of one (answering.pyx)."""
    if in_work.flag.is_set() and isinstance(in_work.error, AskCycle):
        raise AskCycle(str(in_work.error))
    return 0


cdef class Recipe:
    """What an actor is made from: its class, its arguments, its options."""

    def __reduce__(self):
        # A class that is pickled by value, as Spark's are, takes its attributes along: this one is
        # found anew where the class arrives.
        return type(None), ()


cdef class Extra:
    """State that only some actors need; most refs have none."""


cdef class Carried:
    """A message's sender, and the context variables that it sent the message with."""


cdef object sender_of(object second, bint asked):
    """The sender of a message: `second` is that, or what carries it, or the future that it waits for."""
    if asked:
        return (<Future>second).asker
    if isinstance(second, Carried):
        return (<Carried>second).sender
    return second


cdef object current_variables():
    """A copy of the calling thread's context; None if no variable was ever set in it."""
    cdef PyThreadState* thread = PyThreadState_Get()
    return PyContext_CopyCurrent() if thread.context != NULL else None


cdef class ActorRef(Handle):
    """A handle on an actor. Safe in every thread, hashable, equal to itself only.

    Refs cannot be pickled: they mean something in their own process only.
    """

    def __dealloc__(self):
        if self.cell != NULL:
            XDECREF(<PyObject*>self.cell.variables)
            del self.cell

    # --- sending ------------------------------------------------------------------------------------

    @cython.nonecheck(False)
    @cython.always_allow_keywords(False)  # one argument, passed as such: saves a fifth of the call
    def tell(self, message):
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
        self.send(Kind.python, <PyObject*>message, sender, context)

    @cython.nonecheck(False)
    def tell_many(self, messages):
        """Send all of `messages`, an iterable, in its order; cheaper than as many tell().

        If the iterable raises, what it gave until then is sent, and the exception goes on.
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
        try:
            source = iter(messages)
        except TypeError:
            raise TypeError(f"tell_many() wants an iterable of messages, not {safe_repr(messages)}") from None
        if cell.has(slow_cell):
            for message in source:
                self.send(Kind.python, <PyObject*>message, sender, context)
            return
        try:
            for message in source:
                node = context.nodes.take(cell.pool)
                Py_INCREF(message)
                node.kind = Kind.python
                node.first = <void*>message
                node.second = sender
                if sender != NULL:
                    INCREF(sender)
                if first == NULL:
                    first = node
                else:
                    last.set_next(node, relaxed)
                last = node
                count += 1
                if count == CHUNK:
                    self.publish(first, last, context)
                    first = NULL
                    count = 0
                    if context.worker == NULL:
                        context.sent += CHUNK
                        if context.sent >= BURST:
                            let_workers_run(self, context)
        finally:
            if first != NULL:
                self.publish(first, last, context)

    def ask(self, message, timeout=None):
        """Send `message` and return a Future of the answer: what `receive` returns for it.

        With a `timeout` in seconds the future fails with AskTimeout if no answer came. It fails at
        once with ActorStopped if the actor is stopped, and with the handler's exception if that
        fails.
        """
        cdef Context* context = current_context()
        cdef Cell* current = context.current
        cdef Future future = Future.__new__(Future)
        cdef double due = 0
        future.target = self
        if current != NULL:
            future.asker = <object>current.owner
            if current.asked and current.sender != NULL:
                refuse_void(<Future>current.sender)
        if timeout is not None:
            due = self.runtime.timers.due_after(timeout)
        self.send(Kind.ask, <PyObject*>message, <PyObject*>future, context)
        if timeout is not None:  # the receiver's worker wakes up meanwhile
            self.runtime.timers.note(future, due, timeout)
        return future

    def stop(self):
        """Stop the actor after the message in work; what waits behind it becomes dead letters."""
        self.signal(Kind.stop, None, None)

    @cython.nonecheck(False)
    cdef inline int send(self, Kind kind, PyObject* first, PyObject* second, Context* context) except -1:
        cdef Cell* cell = self.cell
        cdef Node* node
        if cell.has(slow_cell):
            return self.send_slowly(kind, first, second, context)
        node = context.nodes.take(cell.pool)
        node.kind = kind
        INCREF(first)
        node.first = first
        node.second = second
        if second != NULL:
            INCREF(second)
        if cell.tail.push(node):
            self.wake(context)
        if context.worker == NULL:
            context.sent += 1
            if context.sent >= BURST:
                let_workers_run(self, context)
        return 0

    cdef int send_slowly(self, Kind kind, PyObject* first, PyObject* second, Context* context) except -1:
        other = <object>second if second != NULL else None
        if not self.may_send(kind, <object>first, other, context):
            return 0
        if self.cell.has(carrying_cell):
            other = self.with_variables(kind, other, current_variables())
        self.enqueue(kind, <object>first, other, context)
        if context.worker == NULL:
            context.sent += 1
            if context.sent >= BURST:
                let_workers_run(self, context)
        return 0

    cdef object with_variables(self, Kind kind, object second, object variables):
        """Return what carries `variables`, a Context or None, beside the sender or the future."""
        if kind == Kind.ask:
            (<Future>second).variables = variables
            return second
        if variables is None:
            return second
        carried = <Carried>Carried.__new__(Carried)
        carried.sender = second
        carried.variables = variables
        return carried

    cdef bint may_send(self, Kind kind, object message, object other, Context* context) except -1:
        """The slow way of send(): refuse, find room, or refer to dead letters."""
        cdef Cell* cell = self.cell
        sender = sender_of(other, kind == Kind.ask)
        if cell.has(forked_cell):
            raise ForkedSystem(
                f"{self.path} lives in the process that made its system; make one in this process"
            )
        if cell.has(closed_cell):
            answer = ActorStopped(f"{self.path} has stopped") if kind == Kind.ask else None
            self.post_dead(message, other, kind == Kind.ask, "stopped", None, answer)
            return False
        if cell.has(limited):
            if cell.limits.reserve(1):
                return True
            try:
                if make_room(self, context, message, sender):
                    return True
            except BaseException as error:
                if kind != Kind.ask:
                    raise
                (<Future>other).complete(None, error)
                if not isinstance(error, Exception):
                    raise  # Ctrl-C while it waited for room is not only the future's business
                return False
            if kind == Kind.ask:
                (<Future>other).complete(
                    None, ActorStopped(f"the ask was dropped by the full mailbox of {self.path}")
                )
            return False
        return True

    cdef int post_dead(
        self, object message, object second, bint asked, str reason, object error, object answer
    ) except -1:
        """Make a dead letter. Who asked gets `answer`, an exception, after it, and so finds it posted."""
        sender = sender_of(second, asked)
        try:
            self.runtime.dead_letters.post(message, self, sender, reason, error)
        finally:
            if asked:
                (<Future>second).complete(None, answer)
        return 0

    def _tell_past_capacity(self, message, variables=None):
        """Send without regard to the mailbox's capacity: what the runtime itself must not wait with.

        `variables` is the context for an actor that wants its senders'.
        """
        cdef Context* context = current_context()
        second = None
        if self.cell.has(closed_cell):
            self.runtime.dead_letters.post(message, self, None, "stopped")
            return
        if self.cell.limits != NULL:
            self.cell.limits.exceed(1)
        if variables is not None and self.cell.has(carrying_cell):
            second = self.with_variables(Kind.python, None, variables.copy())
        self.enqueue(Kind.python, message, second, context)

    cdef void enqueue(self, Kind kind, object message, object second, Context* context) noexcept:
        """Push a message that has its room already."""
        cdef Node* node = context.nodes.take(self.cell.pool)
        Py_INCREF(message)
        node.kind = kind
        node.first = <void*>message
        node.second = NULL
        if second is not None:
            Py_INCREF(second)
            node.second = <void*>second
        if self.cell.tail.push(node):
            self.wake(context)

    @cython.nonecheck(False)
    cdef inline void publish(self, Node* first, Node* last, Context* context) noexcept:
        if self.cell.tail.push_chain(first, last):
            self.wake(context)

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

    cdef void signal(self, Kind kind, object first, object second) noexcept:
        """Push a system message, which overtakes what waits in the mailbox."""
        cdef Context* context = current_context()
        cdef Node* node = context.nodes.take(self.cell.pool)
        node.kind = kind
        Py_INCREF(first)
        Py_INCREF(second)
        node.first = <void*>first
        node.second = <void*>second
        if self.cell.push_system(node):
            self.wake(context)

    # --- being -------------------------------------------------------------------------------------

    @property
    def is_alive(self):
        """False from the moment when the actor begins to stop."""
        return self.phase < STOPPING

    @property
    def name(self):
        """The name given at spawn, or the class's name and the actor's number."""
        if self.own_name is not None:
            return self.own_name
        return f"{self.recipe.cls.__name__}-{self.cell.number}"

    @property
    def path(self):
        """The names from the top-level actor down to this one: `/shop/cart-7`."""
        if self.parent is None:
            return "/" + self.name
        return f"{self.parent.path}/{self.name}"

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
        """The ref that the actor waits for an answer of, in the middle of a message; or None."""
        awaited = self.awaited()
        return (<Future>awaited).target if awaited is not None else None

    @property
    def owes(self):
        """How many asks wait for futures that the actor returned as their answers."""
        cdef Extra extra
        with cython.critical_section(self):
            extra = self.extra
        return len(extra.owed) if extra is not None and extra.owed is not None else 0

    @property
    def is_waiting(self):
        """True while the actor is in the middle of an `async def receive`, or backs off."""
        return self.phase == SUSPENDED or self.phase == RESTARTING

    def _forbid(self):
        """Make every further use an error: this is a copy in a forked process."""
        self.cell.set(forked_cell)

    __class_getitem__ = classmethod(types.GenericAlias)

    def __repr__(self):
        return f"<{type(self).__name__} {self.path}{'' if self.is_alive else ', stopped'}>"

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

    cdef object awaited(self):
        # The future, or None. In any thread, while the actor goes on: who reads a field must own it
        # until it has a reference of its own.
        cdef Extra extra
        cdef object awaited = None
        with cython.critical_section(self):
            extra = self.extra
        if extra is not None:
            with cython.critical_section(extra):
                awaited = extra.awaited if extra.awaited_there is None else extra.awaited_there
        return awaited
