"""Refs on native actors, and sending without the interpreter."""

from cpython.ref cimport Py_DECREF, Py_INCREF

from callboard._inside.answers.future cimport Future
from callboard._inside.sending.overflow cimport make_room
from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.values cimport pack, take_value, value_of
from callboard.core.node cimport Node, wants_answer
from callboard.scheduling.cell cimport Cell, Context, closed_cell, forked_cell, limited
from callboard.scheduling.context cimport current_context

from callboard._inside.sending.values import Record, Tagged
from callboard.core.errors import ActorStopped, ForkedSystem
from callboard.core.text import safe_repr


cdef void wake_closed(ActorRef to, Context* context) noexcept nogil:
    with gil:
        to.wake(context)


cdef bint may_send(ActorRef to, Node* node, Context* context) noexcept nogil:
    """The slow way of send(): True if the mailbox has room, or made some. Else the node is spent."""
    cdef Cell* cell = to.cell
    if not cell.has(closed_cell | forked_cell):
        if not cell.has(limited) or cell.limits.reserve(1):
            return True
    with gil:
        return may_send_slowly(to, node, context)


cdef bint may_send_slowly(ActorRef to, Node* node, Context* context) noexcept:
    cdef Cell* cell = to.cell
    if not cell.has(closed_cell | forked_cell):
        if (node.flags & wants_answer) == 0:
            value = value_of(node)
        else:
            value = None
        try:
            if make_room(to, context, value, None):
                return True
            take_value(node)  # make_room() made the dead letter
        except Exception as error:
            to.runtime.dead_letters.post(take_value(node), to, None, "dropped_newest", error)
        if node.flags & wants_answer:
            future = <object>node.second
            Py_DECREF(future)
            (<Future>future).complete(
                None, ActorStopped(f"the ask was dropped by the full mailbox of {to.path}"))
    else:
        bury_native(to, node, "stopped")
    context.nodes.give(node, cell.pool)
    return False


cdef class NativeRef(ActorRef):
    """A ref on a native actor.

    It takes integers of 64 bits, floats, objects with memory (NumPy arrays, bytes, Arrow record
    batches and arrays, by the buffer protocol or Arrow's C data interface: no copy is made), and
    Record; and Tagged with one of these. An answer is an int, a float, or a NativeBuffer.
    """

    def tell(self, message):
        """Send a native value. Raises TypeError for what is none."""
        cdef Context* context = current_context()
        cdef Node* node = context.nodes.take(self.cell.pool)
        try:
            pack(node, message)
        except BaseException:
            context.nodes.give(node, self.cell.pool)
            raise
        self.push(node, context, message)

    def tell_many(self, messages):
        """Send all of `messages` in order."""
        try:
            source = iter(messages)
        except TypeError:
            raise TypeError(f"tell_many() wants an iterable of messages, not {safe_repr(messages)}") from None
        for message in source:
            self.tell(message)

    def ask(self, message, timeout=None):
        """Send a native value and return a Future of the answer. A Record cannot be asked."""
        cdef Context* context = current_context()
        cdef Cell* current = context.current
        cdef Node* node
        cdef Future future = Future.__new__(Future)
        cdef double due = 0
        future.target = self
        if current != NULL:
            future.asker = <object>current.owner
        if isinstance(message, Record) or (
            isinstance(message, Tagged) and isinstance(message.value, Record)
        ):
            raise TypeError("a Record cannot be asked: its 16 bytes leave no room for the answer")
        if timeout is not None:
            due = self.runtime.timers.due_after(timeout)
        node = context.nodes.take(self.cell.pool)
        try:
            pack(node, message)
        except BaseException:
            context.nodes.give(node, self.cell.pool)
            raise
        node.flags = wants_answer
        Py_INCREF(future)
        node.second = <void*>future
        self.push(node, context, message)
        if timeout is not None:
            self.runtime.timers.note(future, due, timeout)
        return future

    cdef int push(self, Node* node, Context* context, object message) except -1:
        cdef Cell* cell = self.cell
        cdef bint asked = node.flags & wants_answer
        future = <object>node.second if asked else None
        if cell.has(forked_cell):
            take_value(node)
            if asked:
                Py_DECREF(future)
            context.nodes.give(node, cell.pool)
            raise ForkedSystem(
                f"{self.path} lives in the process that made its system; make one in this process"
            )
        if cell.has(limited) and not cell.has(closed_cell) and not cell.limits.reserve(1):
            room = False
            try:
                room = make_room(self, context, message, None)
            except BaseException as error:
                if not asked:
                    raise
                (<Future>future).complete(None, error)
            finally:
                if not room:
                    take_value(node)
                    if asked:
                        (<Future>future).complete(
                            None, ActorStopped(f"the ask was dropped by the full mailbox of {self.path}"))
                        Py_DECREF(future)
                    context.nodes.give(node, cell.pool)
            if not room:
                return 0
        elif cell.has(closed_cell):
            bury_native(self, node, "stopped")
            context.nodes.give(node, cell.pool)
            return 0
        if cell.tail.push(node):
            self.wake(context)
        return 0


cdef void bury_native(ActorRef ref, Node* node, str reason) noexcept:
    if ref.runtime.closing:
        reason = "system stopped"
    future = answer = None
    if node.flags & wants_answer:
        future = <object>node.second
        Py_DECREF(future)
        answer = ActorStopped(f"{ref.path} has stopped")
    ref.post_dead(take_value(node), future, future is not None, reason, None, answer)
