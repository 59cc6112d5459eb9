"""Native actors: behaviours that run without the interpreter, on native values.

A native actor is a Cython class that derives from NativeActor; see `native.pxd` for what it
overrides and calls. Its `__init__`, `on_start` and `on_stop` are ordinary Python methods and run on
the worker with the interpreter held; `receive` runs without it, so native actors on different
workers run in parallel on a build with a GIL, too.
"""

cimport cython
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from callboard._inside.answers.future cimport Future
from callboard._inside.life.lifecycle cimport ENDED, GAVE_UP, LATER, Verdict, attend
from callboard._inside.sending.native_ref cimport NativeRef, bury_native, send
from callboard._inside.sending.ref cimport LIVE, ActorRef, no_system
from callboard._inside.sending.values cimport from_buffer
from callboard._inside.receiving.variables cimport put_on, replace, take_off
from callboard.core.buffer cimport Buffer
from callboard.core.node cimport Kind, Node, Node as Message, wants_answer
from callboard.scheduling.cell cimport Cell, Context, Outcome, account, charge, end_turn, goes_on
from callboard.scheduling.context cimport current_context

from callboard._inside.sending.values import Record, Tagged
from callboard.core.errors import CallboardError
from callboard.core.text import safe_repr

# What native.pxd cimports is a type for Cython, but no name of this module for Python.
globals().update(NativeBuffer=NativeBuffer, NativeRef=NativeRef)

__all__ = ["NativeActor", "NativeBuffer", "NativeFailure", "NativeRef", "Record", "Tagged"]


class NativeFailure(CallboardError):
    """A native actor said that it failed."""


# --- the actor ---------------------------------------------------------------------------------------


cdef class NativeActor:
    """An actor whose `receive` is a C function. See `native.pxd`."""

    def __cinit__(self):
        cdef Context* context = current_context()
        if context.constructing != NULL:
            ref = <ActorRef>context.constructing
            if ref.recipe.cls is type(self):
                self.own_ref = <NativeRef>ref
                context.constructing = NULL

    cdef NativeRef own(self):
        if self.own_ref is None:
            raise no_system(self)
        return self.own_ref

    @property
    def ref(self):
        """This actor's own ref."""
        return self.own()

    @property
    def system(self):
        """The actor's system."""
        return self.own().runtime.system

    def spawn(self, cls, /, *args, **kwargs):
        """Spawn a child: like `ActorSystem.spawn`, but it stops when this actor stops."""
        return self.own().runtime.spawner(self.own_ref, cls, args, kwargs)

    def on_start(self):
        """Run once before the first message. On the worker's thread, with the interpreter."""

    def on_stop(self):
        """Run when the actor has stopped. On the worker's thread, with the interpreter."""

    def on_failure(self, error, message):
        """Run when the actor failed. On the worker's thread, with the interpreter."""

    cdef void receive(self, Message* message) noexcept nogil:
        self.fail(b"this native actor does not override receive()")

    @cython.nonecheck(False)
    cdef bint send_integer(self, ActorRef to, int64_t value, uint32_t tag=0) noexcept nogil:
        cdef Node* node = self.context.nodes.take(to.cell.pool)
        node.kind = Kind.integer
        node.flags = 0
        node.tag = tag
        node.integer = value
        node.second = NULL
        return send(to, node, self.context)

    @cython.nonecheck(False)
    cdef bint send_real(self, ActorRef to, double value, uint32_t tag=0) noexcept nogil:
        cdef Node* node = self.context.nodes.take(to.cell.pool)
        node.kind = Kind.real
        node.flags = 0
        node.tag = tag
        node.real = value
        node.second = NULL
        return send(to, node, self.context)

    @cython.nonecheck(False)
    cdef bint send_record(self, ActorRef to, const void* bytes16, uint32_t tag=0) noexcept nogil:
        cdef Node* node = self.context.nodes.take(to.cell.pool)
        node.kind = Kind.record
        node.flags = 0
        node.tag = tag
        memcpy(&node.integer, bytes16, 8)
        memcpy(&node.second, <const char*>bytes16 + 8, 8)
        return send(to, node, self.context)

    @cython.nonecheck(False)
    cdef bint send_buffer(self, ActorRef to, Buffer* buffer, uint32_t tag=0) noexcept nogil:
        cdef Node* node = self.context.nodes.take(to.cell.pool)
        node.kind = Kind.buffer
        node.flags = 0
        node.tag = tag
        buffer.retain()
        node.first = buffer
        node.second = NULL
        return send(to, node, self.context)

    @cython.nonecheck(False)
    cdef bint forward(self, ActorRef to, Message* message) noexcept nogil:
        """Pass the message in work on as it is, with its tag; with an ask, its answer is passed on to
        be given there."""
        cdef Node* node = self.context.nodes.take(to.cell.pool)
        node.kind = message.kind
        node.flags = 0
        node.tag = message.tag
        node.integer = message.integer
        node.second = message.second
        if message.kind == Kind.buffer:
            (<Buffer*>message.first).retain()
        if message.kind != Kind.record:
            node.second = NULL
            if self.asked == message:
                node.flags = wants_answer
                node.second = message.second
                self.asked = NULL
        return send(to, node, self.context)

    cdef void answer_integer(self, int64_t value) noexcept nogil:
        if self.asked != NULL:
            with gil:
                self.answer(value)

    cdef void answer_real(self, double value) noexcept nogil:
        if self.asked != NULL:
            with gil:
                self.answer(value)

    cdef void answer_buffer(self, Buffer* buffer) noexcept nogil:
        if self.asked != NULL:
            with gil:
                self.answer(from_buffer(buffer))

    def answer(self, value):
        """Answer the ask in work with a Python object. For subclasses that hold the interpreter."""
        if self.asked != NULL:
            future = <Future><object>self.asked.second
            self.asked = NULL
            future.complete(value, None)
            Py_DECREF(future)

    cdef void stop_self(self) noexcept nogil:
        with gil:
            self.own_ref.signal(Kind.stop, None, None)

    cdef void fail(self, const char* reason) noexcept nogil:
        """Fail as a Python actor does that raises: the supervisor decides, once receive() is over."""
        with gil:
            self.fail_with(NativeFailure(reason.decode("utf-8", "replace")))

    def fail_with(self, error):
        """Fail with a Python exception. For subclasses that hold the interpreter."""
        self.own()
        if not isinstance(error, BaseException):
            raise TypeError(f"fail_with() wants an exception, not {safe_repr(error)}")
        if self.asked != NULL:
            future = <Future><object>self.asked.second
            self.asked = NULL
            future.complete(None, error)
            Py_DECREF(future)
        # Not here: the end of the actor is the end of this object, which receive() still uses.
        self.own_ref.signal(Kind.failed, self.own_ref, error)


# --- its dispatch ------------------------------------------------------------------------------------

cdef extern from *:
    bint unlikely "__builtin_expect" (bint condition, bint usual) nogil

ctypedef Outcome (*Loop)(void*, void*, Cell*, Context*, uint32_t) noexcept nogil


@cython.nonecheck(False)
cdef Outcome run_native(Cell* cell, Context* context, uint32_t quantum) noexcept nogil:
    """Hand up to `quantum` messages to the actor's receive()."""
    cdef Outcome outcome
    if unlikely(not (<bint (*)(void*) noexcept nogil>is_live)(cell.owner) or cell.has_system(), False):
        with gil:
            if not attend_native(cell, context, &outcome):
                return outcome
    return (<Loop>run_loop)(cell.object, cell.owner, cell, context, quantum)


cdef bint attend_native(Cell* cell, Context* context, Outcome* outcome) noexcept:
    """Handle system messages; False, with the outcome, if no user message is to be handled."""
    cdef ActorRef ref = <ActorRef>cell.owner  # when the actor ends, this may be the last reference
    cdef Verdict verdict = attend(ref, context)
    if verdict == ENDED:
        outcome[0] = bury_natives(ref, context)
    else:
        outcome[0] = Outcome.more if verdict == LATER else Outcome.done
    return verdict != ENDED and verdict != LATER and verdict != GAVE_UP


@cython.nonecheck(False)
cdef bint is_live(ActorRef ref) noexcept nogil:
    return ref.phase == LIVE


@cython.nonecheck(False)
cdef Outcome run_loop(
    NativeActor actor, ActorRef ref, Cell* cell, Context* context, uint32_t quantum
) noexcept nogil:
    # The arguments are borrowed; the actor lives as long as its cell is in work here.
    cdef Node* spent = NULL
    cdef Node* node
    cdef uint32_t handled = 0
    cdef uint32_t limit = quantum
    put_on(cell, context)
    if actor.context != context:  # actors of other workers may be neighbours on its cache line
        actor.context = context
    while True:
        node = cell.head.pop(spent)
        if node == NULL:
            break
        context.nodes.give(spent, cell.pool)
        handled += 1
        # The node stays as the queue's dummy until the next pop: receive() reads it in place.
        if node.flags & wants_answer:
            actor.asked = node
        actor.receive(node)
        if actor.asked != NULL:
            answer_nothing(actor)
        if node.kind == Kind.buffer:
            (<Buffer*>node.first).drop()
        if cell.limits != NULL:
            cell.limits.give_back(1)
        if cell.has_system() or ref.phase != LIVE:
            take_off(cell, context)
            account(cell, context, handled)
            return Outcome.more
        if not goes_on(context, handled, limit):
            break
    take_off(cell, context)
    account(cell, context, handled)
    if handled < limit:
        end_turn(context, limit)
        if cell.try_idle():
            return Outcome.done
    return Outcome.more


cdef void answer_nothing(NativeActor actor) noexcept nogil:
    """An ask that receive() left unanswered is answered with None."""
    with gil:
        actor.answer(None)


cdef Outcome bury_natives(ActorRef ref, Context* context) noexcept:
    """Make dead letters of all that waits in a closed native actor's mailbox."""
    cdef Cell* cell = ref.cell
    cdef Node* spent = NULL
    cdef Node* node
    if not ref.kept:
        Py_INCREF(ref)  # as in dispatch.bury_all()
        ref.kept = True
    node = cell.head.pop(spent)
    while node != NULL:
        context.nodes.give(spent, cell.pool)
        if cell.limits != NULL:
            cell.limits.give_back(1)
        bury_native(ref, node, "stopped")
        node = cell.head.pop(spent)
    replace(context, NULL)  # as in dispatch.bury_all()
    charge(cell, context)
    if not cell.try_idle():
        return Outcome.more
    Py_DECREF(ref)
    return Outcome.done
