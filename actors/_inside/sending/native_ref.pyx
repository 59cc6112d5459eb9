"""Refs to native actors, and sending without the interpreter."""

cimport cython
from cpython.object cimport PyObject
from cpython.ref cimport Py_XINCREF

from callboard._inside.sending.actor_cell cimport guarded_cell, stamp
from callboard._inside.sending.envelope cimport Envelope, to_tell
from callboard._inside.sending.overflow cimport admit, look_in
from callboard._inside.sending.stored_envelope cimport ADMITTED, REFUSED, Fate, dead_letter_and_go_on, take_stored
from callboard._inside.sending.system_kind cimport SystemKind
from callboard._inside.sending.values cimport pack, take_value
from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport Kind, wants_answer
from callboard.scheduling.cell cimport Cell
from callboard.scheduling.context cimport Context, current_context


cdef void wake_closed(ActorRef to, Context* context) noexcept nogil:
    with gil:
        to.wake(context)


cdef bint may_send(ActorRef to, Node* node, Context* context) noexcept nogil:
    """The slow way of send(): True if the mailbox has room, or made some. Else the node is spent."""
    cdef Fate found = look_in(to.cell, False)
    if found != ADMITTED:
        with gil:
            if not admit_or_dead_letter_node(to, found, node, context):
                return False
    stamp(node, to.cell, context)
    return True


cdef bint admit_or_dead_letter_node(ActorRef to, Fate found, Node* node, Context* context) noexcept:
    """Wait for room, or make a dead letter: a native sender cannot be raised at."""
    cdef Fate fate
    cdef object refusal = None
    assert holds(node.kind > Kind.ask)
    try:
        fate = admit(to, to.runtime, found, context)
    except BaseException as error:
        fate, refusal = REFUSED, error
        if not isinstance(error, Exception) and context.current != NULL:  # Ctrl-C, as in Python's `receive`
            sender = <ActorRef>context.current.owner
            sender.send_system(SystemKind.failed, sender, error)
    if fate == ADMITTED:
        return True
    stored = take_stored(node)
    context.nodes.give(node, to.cell.spare)
    dead_letter_and_go_on(to, to.runtime, stored, fate, refusal)
    return False


@cython.trashcan(True)  # as ActorRef
cdef class NativeRef(ActorRef):
    """A ref to a native actor.

    It accepts 64-bit integers, floats, NativeRecord, objects with memory, and Tagged with one of these. Objects with
    memory support the buffer protocol or Arrow's C data interface, such as NumPy arrays, bytes, Arrow record batches
    and arrays; they are not copied. Anything else raises TypeError. An answer is an int, a float, or a NativeBuffer. A
    NativeRecord can be told but not asked.
    """

    @cython.always_allow_keywords(False)
    def tell(self, message, /):
        """Send a native value."""
        # A method of this class, though the inherited one would do: CPython 3.11 calls a method of one argument
        # quickly only where its class is exactly that of the object.
        self.send_slowly(to_tell(<PyObject*>message, NULL), current_context())

    cdef int send_slowly(self, Envelope envelope, Context* context) except -1:
        cdef Cell* cell = self.cell
        cdef Node* node = context.nodes.take(cell.spare)
        cdef bint admitted = False
        cdef Fate found
        try:
            pack(node, <object>envelope.message)
            if envelope.reply_to != NULL and node.kind == Kind.record:
                raise TypeError("a NativeRecord cannot be asked: its 16 bytes leave no room for the answer")
        except BaseException:
            context.nodes.give(node, cell.spare)
            raise
        if cell.has(guarded_cell):
            found = self.take_room(context)
            try:
                admitted = found == ADMITTED or self.is_admitted(found, &envelope, context)
            finally:
                if not admitted:
                    take_value(node)
                    context.nodes.give(node, cell.spare)
            if not admitted:
                return 0
        self.push_packed(node, envelope, context)
        return 0

    def _tell_past_capacity(self, message, variables=None, timer=None):
        """Send without regard to the mailbox's capacity. A native actor sees no `variables`, nor `timer`."""
        cdef Context* context = current_context()
        cdef Envelope envelope = to_tell(<PyObject*>message, NULL)
        cdef Node* node = context.nodes.take(self.cell.spare)
        cdef bint admitted = False
        cdef Fate found
        try:
            pack(node, message)
        except BaseException:
            context.nodes.give(node, self.cell.spare)
            raise
        try:
            found = look_in(self.cell, True)
            admitted = found == ADMITTED or self.is_admitted(found, &envelope, context)
        finally:
            if not admitted:
                take_value(node)
                context.nodes.give(node, self.cell.spare)
        if admitted:
            self.push_packed(node, envelope, context)

    cdef int push_with(self, object variables, Envelope envelope, Context* context) except -1:
        cdef Node* node = self.take_node(context)
        assert holds(self.cell.limits != NULL)  # it has its room
        try:
            pack(node, <object>envelope.message)
        except BaseException:
            context.nodes.give(node, self.cell.spare)
            self.cell.limits.take_back(1)
            raise
        self.push_packed(node, envelope, context)
        return 0

    cdef void push_packed(self, Node* node, Envelope envelope, Context* context) noexcept:
        assert holds(node.kind > Kind.ask and (envelope.reply_to == NULL or node.kind != Kind.record))
        if envelope.reply_to != NULL:
            Py_XINCREF(envelope.reply_to)
            node.flags = wants_answer
            node.reply_to = envelope.reply_to
        stamp(node, self.cell, context)
        if self.cell.tail.push(node):
            self.wake(context)
