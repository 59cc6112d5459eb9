"""Letters: messages that are neither in a mailbox nor in work, with what came with them."""

cimport cython
from cpython.ref cimport Py_DECREF

from callboard._inside.sending.envelope cimport to_ask, to_tell
from callboard._inside.sending.values cimport take_value
from callboard.core.node cimport Kind, wants_answer

cdef extern from "Python.h":
    void DECREF "Py_DECREF" (PyObject*)
    void XDECREF "Py_XDECREF" (PyObject*)


@cython.freelist(64)
cdef class Letter:
    """A message, and its sender or the future that wants its answer."""

    cdef Envelope lend(self) noexcept:
        """Return an envelope that is good for as long as the letter is."""
        if self.reply_to is not None:
            return to_ask(<PyObject*>self.message, <PyObject*>self.reply_to)
        return to_tell(<PyObject*>self.message, <PyObject*>self.sender if self.sender is not None else NULL)


cdef class Carried:
    """A message's sender, and the context variables that it sent the message with."""


cdef Letter letter_of(object message, object sender, Future reply_to):
    """Return a letter of its parts."""
    cdef Letter letter = Letter.__new__(Letter)
    letter.message = message
    letter.sender = sender
    letter.reply_to = reply_to
    return letter


cdef Letter copy_of(Envelope* envelope):
    """Return a letter with references of its own."""
    return letter_of(
        <object>envelope.message,
        <object>envelope.sender if envelope.sender != NULL else None,
        <Future>envelope.reply_to if envelope.reply_to != NULL else None,
    )


cdef Letter take_over(Envelope* envelope):
    """Return a letter with the references of an envelope that owns them."""
    letter = copy_of(envelope)
    DECREF(envelope.message)
    XDECREF(envelope.sender)
    XDECREF(envelope.reply_to)
    return letter


cdef Letter take_letter(Node* node):
    """Take over what a node of any kind carries."""
    cdef Letter letter = Letter.__new__(Letter)
    cdef bint is_asked
    if node.kind <= Kind.ask:
        letter.message = <object>node.first
        Py_DECREF(letter.message)
        is_asked = node.kind == Kind.ask
        if not is_asked and node.sender != NULL:
            letter.sender = <object>node.sender
            Py_DECREF(letter.sender)
    else:
        letter.message = take_value(node)
        is_asked = node.kind != Kind.record and node.flags & wants_answer
    if is_asked:
        letter.reply_to = <Future>node.reply_to
        Py_DECREF(letter.reply_to)
    return letter


cdef object sender_of(Envelope* envelope):
    """Return the ref of the actor that told or asked; None if no actor did."""
    if envelope.reply_to != NULL:
        return (<Future>envelope.reply_to).asker
    if envelope.sender == NULL:
        return None
    sender = <object>envelope.sender
    return (<Carried>sender).sender if isinstance(sender, Carried) else sender
