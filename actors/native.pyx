"""Native actors: behaviours that run without the interpreter, on native values.

A native actor is a Cython class that derives from NativeActor; see `native.pxd` for the methods that it overrides
and calls. Its `__init__`, `on_start` and `on_stop` are ordinary Python methods and run on the worker's thread with
the interpreter held. `receive` runs without it. So native actors on different workers run in parallel on a build
with a GIL, too.
"""

cimport cython
from cpython.ref cimport Py_DECREF
from libc.stdint cimport int64_t, uint32_t
from libc.string cimport memcpy

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.thread_locals cimport ActorContext, actor_context
from callboard._inside.sending.native_ref cimport NativeRef
from callboard._inside.sending.native_send cimport send
from callboard._inside.sending.ref cimport ActorRef, no_system
from callboard._inside.sending.system_kind cimport SystemKind
from callboard._inside.sending.values cimport from_buffer
from callboard.core.memory.buffer cimport Buffer
from callboard.core.memory.node cimport Kind, Node, Node as Message, wants_answer

from callboard.core.handles import public_names
from callboard._inside.sending.values import NativeRecord, Tagged
from callboard.core.errors import CallboardError
from callboard.core.text import safe_repr

cdef extern from *:
    bint unlikely "__builtin_expect" (bint condition, bint usual) nogil

# A type that native.pxd cimports is known to Cython, but is no name of this module for Python.
globals().update(NativeBuffer=NativeBuffer)

__all__ = ["NativeActor", "NativeBuffer", "NativeFailure", "NativeRecord", "Tagged"]


class NativeFailure(CallboardError):
    """A native actor reported that it failed."""


@cython.nonecheck(False)
cdef inline Node* blank(NativeActor actor, ActorRef to, Kind kind, uint32_t tag) noexcept nogil:
    """Take a node for a message that wants no answer; its value is still to be filled in. NULL, and the
    actor fails: there is nobody to send it to."""
    cdef Node* node
    if unlikely(to is None, False):
        actor.fail(b"this native actor sends to None: a ref that it was not given?")
        return NULL
    node = actor.context.nodes.try_take(to.cell.spare)
    if unlikely(node == NULL, False):
        actor.fail(b"this native actor found no memory for a message that it sends")
        return NULL
    node.kind = kind
    node.flags = 0
    node.tag = tag
    node.second = NULL
    return node


cdef int complete_ask(NativeActor actor, value, error) except -1:
    """Complete the ask in work, if there is one that is not answered yet."""
    if actor.asked != NULL:
        future = <Future>actor.asked.reply_to
        actor.asked = NULL
        future.complete(value, error)
        Py_DECREF(future)
    return 0


cdef class NativeActor:
    """An actor whose `receive` is a C function. See `native.pxd`."""

    def __dir__(self):
        return public_names(self)

    def __cinit__(self):
        cdef ActorContext* context = actor_context()
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
        """Run once before the first message. On the worker's thread, with the interpreter held."""

    def on_stop(self):
        """Run when the actor has stopped. On the worker's thread, with the interpreter held."""

    def on_failure(self, error, message):
        """Run when the actor has failed. On the worker's thread, with the interpreter held."""

    cdef void receive(self, Message* message) noexcept nogil:
        self.fail(b"this native actor does not override receive()")

    @cython.nonecheck(False)
    cdef bint send_integer(self, ActorRef to, int64_t value, uint32_t tag=0) noexcept nogil:
        cdef Node* node = blank(self, to, Kind.integer, tag)
        if node == NULL:
            return False
        node.integer = value
        return send(to, node, self.context)

    @cython.nonecheck(False)
    cdef bint send_real(self, ActorRef to, double value, uint32_t tag=0) noexcept nogil:
        cdef Node* node = blank(self, to, Kind.real, tag)
        if node == NULL:
            return False
        node.real = value
        return send(to, node, self.context)

    @cython.nonecheck(False)
    cdef bint send_record(self, ActorRef to, const void* bytes16, uint32_t tag=0) noexcept nogil:
        cdef Node* node = blank(self, to, Kind.record, tag)
        if node == NULL:
            return False
        memcpy(&node.integer, bytes16, 8)
        memcpy(&node.second, <const char*>bytes16 + 8, 8)
        return send(to, node, self.context)

    @cython.nonecheck(False)
    cdef bint send_buffer(self, ActorRef to, Buffer* buffer, uint32_t tag=0) noexcept nogil:
        cdef Node* node = blank(self, to, Kind.buffer, tag)
        if node == NULL:
            return False
        buffer.retain()
        node.first = buffer
        return send(to, node, self.context)

    @cython.nonecheck(False)
    cdef bint forward(self, ActorRef to, Message* message) noexcept nogil:
        """Pass the message in work on as it is, with its tag; with an ask, its answer is passed on to
        be given there."""
        cdef Node* node = blank(self, to, message.kind, message.tag)
        if node == NULL:
            return False
        node.integer = message.integer
        if message.kind == Kind.record:
            node.second = message.second
        elif self.asked == message:
            node.flags = wants_answer
            node.reply_to = message.reply_to
            self.asked = NULL
        if message.kind == Kind.buffer:
            (<Buffer*>message.first).retain()
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
        """Answer the current ask with a Python object. For subclasses that hold the interpreter."""
        complete_ask(self, value, None)

    cdef void stop_self(self) noexcept nogil:
        with gil:
            self.own_ref.send_system(SystemKind.stop, None, None)

    cdef void fail(self, const char* reason) noexcept nogil:
        """Fail as a Python actor does that raises: the supervisor decides, once receive() is over."""
        with gil:
            self.fail_with(NativeFailure(reason.decode("utf-8", "replace")))

    def fail_with(self, error):
        """Fail with a Python exception. For subclasses that hold the interpreter."""
        self.own()
        if not isinstance(error, BaseException):
            raise TypeError(f"fail_with() expects an exception, got {safe_repr(error)}")
        complete_ask(self, None, error)
        # Not here: the end of the actor is the end of this object, which receive() still uses.
        self.own_ref.send_system(SystemKind.failed, self.own_ref, error)
