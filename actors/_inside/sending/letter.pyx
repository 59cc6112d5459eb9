"""Letters: messages that are neither in a mailbox nor in work, with what came with them."""

cimport cython
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF

from callboard._inside.answers.sampling cimport note_end
from callboard._inside.sending.envelope cimport to_ask, to_tell
from callboard._inside.sending.values cimport take_value
from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport wants_answer
from callboard.scheduling.context cimport current_context

FENCE = type("Fence", (), {"__repr__": lambda self: "<fence>"})()
RUN = type("Run", (), {"__repr__": lambda self: "<run>"})()
START = type("Start", (), {"__repr__": lambda self: "<start>"})()


@cython.freelist(64)
cdef class Letter:
    """A message, and its sender or the future that wants its answer."""

    cdef Envelope lend(self) noexcept:
        """Return an envelope that is good for as long as the letter is."""
        if self.reply_to is not None:
            return to_ask(<PyObject*>self.message, <PyObject*>self.reply_to)
        return to_tell(<PyObject*>self.message, <PyObject*>self.sender if self.sender is not None else NULL)


cdef class Carried:
    """A message's sender, and what else there is to know of where the message comes from."""


cdef class LastFence(Future):
    """The answer of a fence behind which the actor stops, so that it begins no message behind it."""


cdef Letter letter_of(object message, object sender, Future reply_to):
    """Return a letter of its parts."""
    assert holds(sender is None or reply_to is None)
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
    assert holds(envelope.message != NULL)
    letter = copy_of(envelope)
    Py_XDECREF(envelope.message)
    Py_XDECREF(envelope.sender)
    Py_XDECREF(envelope.reply_to)
    return letter


cdef void open_letter(Letter letter, Envelope* envelope) noexcept:
    """Fill an envelope with a letter's contents, and references of its own."""
    envelope[0] = letter.lend()
    Py_XINCREF(envelope.message)
    Py_XINCREF(envelope.sender)
    Py_XINCREF(envelope.reply_to)


cdef Letter take_letter(Node* node):
    """Take over what a node of any kind carries. A sample that was not ended before is lost."""
    cdef Envelope envelope
    if node.kind > Kind.record:
        end_sample(node, True)
    fetch(node, &envelope)
    return take_over(&envelope)


cdef void end_sample(Node* node, bint is_lost) noexcept:
    """Make a plain message of one that is a trace's sample, and note its end in the dispatch in work."""
    cdef Envelope envelope
    assert holds(node.kind > Kind.record)
    node.kind = Kind.ask if node.kind == Kind.sampled_ask else Kind.python
    fetch(node, &envelope)
    sender = sender_of(&envelope)
    note_end(current_context(), sender.number if sender is not None else 0, node.tag, is_lost)
    node.tag = 0


cdef void fetch_slowly(Node* node, Envelope* envelope) noexcept:
    """Take over a message that is a trace's sample, or make a Python object of a native value."""
    if node.kind > Kind.record:
        end_sample(node, False)
        fetch(node, envelope)
        return
    assert holds(node.kind > Kind.ask)
    value = take_value(node)
    Py_INCREF(value)
    envelope.message = <PyObject*>value
    envelope.sender = envelope.reply_to = NULL
    if node.kind != Kind.record and node.flags & wants_answer:
        envelope.reply_to = <PyObject*>node.reply_to


cdef object sender_of(Envelope* envelope):
    """Return the ref of the actor that told or asked; None if no actor did."""
    if envelope.reply_to != NULL:
        return (<Future>envelope.reply_to).asker
    if envelope.sender == NULL:
        return None
    sender = <object>envelope.sender
    return (<Carried>sender).sender if isinstance(sender, Carried) else sender


cdef object variables_of(Envelope* envelope):
    """Return the context variables that a message was sent with, or None."""
    if envelope.reply_to != NULL:
        return (<Future>envelope.reply_to).variables
    if envelope.sender == NULL:
        return None
    sender = <object>envelope.sender
    return (<Carried>sender).variables if isinstance(sender, Carried) else None
