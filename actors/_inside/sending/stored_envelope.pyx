"""Messages that are neither in a mailbox nor in work, and those that become dead letters."""

cimport cython
from cpython.ref cimport Py_INCREF, Py_XDECREF, Py_XINCREF

from callboard._inside.answers.thread_locals cimport note_end
from callboard._inside.sending.envelope cimport Envelope, to_ask, to_tell
from callboard._inside.sending.values cimport take_value
from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport wants_answer
from callboard.scheduling.context cimport current_context

from callboard._inside.answers.wait_cause import WaitTarget, WaitCause
from callboard.core.errors import ActorStopped, MailboxFull
from callboard.core.log import log


FENCE = type("Fence", (), {"__repr__": lambda self: "<fence>"})()
RUN = type("Run", (), {"__repr__": lambda self: "<run>"})()
START = type("Start", (), {"__repr__": lambda self: "<start>"})()


@cython.freelist(64)
cdef class StoredEnvelope:
    """A message, and its sender or the future that wants its answer."""

    cdef Envelope lend(self) noexcept:
        """Return an envelope that is good for as long as this object is."""
        if self.reply_to is not None:
            return to_ask(<PyObject*>self.message, <PyObject*>self.reply_to)
        return to_tell(<PyObject*>self.message, <PyObject*>self.sender if self.sender is not None else NULL)


cdef class Carried:
    """A message's sender, and what else there is to know of where the message comes from."""


cdef class LastFence(Future):
    """The answer of a fence behind which the actor stops, so that it begins no message behind it."""

    @property
    def _wait_cause(self):
        return WaitCause(WaitTarget.ANSWER_OF, self.target)


cdef StoredEnvelope stored_envelope(object message, object sender, Future reply_to):
    """Return an envelope of these parts."""
    assert holds(sender is None or reply_to is None)
    cdef StoredEnvelope stored = StoredEnvelope.__new__(StoredEnvelope)
    stored.message = message
    stored.sender = sender
    stored.reply_to = reply_to
    return stored


cdef StoredEnvelope copy_of(Envelope* envelope):
    """Return a copy with its own references."""
    return stored_envelope(
        <object>envelope.message,
        <object>envelope.sender if envelope.sender != NULL else None,
        <Future>envelope.reply_to if envelope.reply_to != NULL else None,
    )


cdef StoredEnvelope take_over(Envelope* envelope):
    """Return a copy that takes over the references of an envelope that owns them."""
    assert holds(envelope.message != NULL)
    stored = copy_of(envelope)
    Py_XDECREF(envelope.message)
    Py_XDECREF(envelope.sender)
    Py_XDECREF(envelope.reply_to)
    return stored


cdef void fill_from(StoredEnvelope stored, Envelope* envelope) noexcept:
    """Fill an envelope with the contents of a stored one, and new references."""
    envelope[0] = stored.lend()
    Py_XINCREF(envelope.message)
    Py_XINCREF(envelope.sender)
    Py_XINCREF(envelope.reply_to)


cdef StoredEnvelope take_stored(Node* node):
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
    note_end(current_context(), sender._number if sender is not None else 0, node.tag, is_lost)
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


# --- dead letters, and the exceptions of their asks ----------------------------------------------------


cdef dict REASONS = {
    STOPPED: "stopped",
    FAILED: "failed",
    DROPPED_NEWEST: "dropped_newest",
    DROPPED_OLDEST: "dropped_oldest",
    REFUSED: "refused",
    CANCELLED: "cancelled",
}


cdef int dead_letter(Handle to, Runtime runtime, StoredEnvelope stored, Fate fate, object error=None) except -1:
    """Make a dead letter. The asker gets an exception, `error` if there is one, after the dead letter is posted."""
    cdef Envelope envelope = stored.lend()
    assert holds(fate in REASONS)
    if stored.message is RUN:
        return 0
    if stored.message is FENCE:  # nobody sent it as a message
        assert holds(stored.reply_to is not None)
        stored.reply_to.complete(None, answer_of(to, runtime, fate))
        return 0
    reason = REASONS[fate]
    if fate == STOPPED:
        end = runtime.dead_letters.end_of(to)
        if end.reason.startswith("system"):
            reason = "system stopped"
        elif error is None and end.cause is not None:
            error = stopped(to, runtime)
    try:
        runtime.dead_letters.post(stored.message, to, sender_of(&envelope), reason, error)
    finally:
        if stored.reply_to is not None:
            stored.reply_to.complete(None, error if error is not None else answer_of(to, runtime, fate))
    return 0


cdef void dead_letter_and_go_on(
    Handle to, Runtime runtime, StoredEnvelope stored, Fate fate, object error=None
) noexcept:
    """dead_letter(), where no caller can handle its failure: that is logged."""
    try:
        dead_letter(to, runtime, stored, fate, error)
    except BaseException as another:
        log.error("a dead letter could not be delivered", actor=to._short_path, exc_info=another)


cdef object answer_of(Handle to, Runtime runtime, Fate fate):
    """Return the exception for the asker."""
    if fate == DROPPED_NEWEST:
        return MailboxFull(f"the ask was dropped by the full mailbox of {to._short_path}")
    if fate == DROPPED_OLDEST:
        return MailboxFull(
            f"the ask was dropped as the oldest message in the full mailbox of {to._short_path}")
    return stopped(to, runtime)


cdef object stopped(Handle to, Runtime runtime, str more=""):
    """Return the ActorStopped of an actor, which says how it ended, and `more`."""
    end = runtime.dead_letters.end_of(to)
    error = ActorStopped(f"{to._short_path} {end}{more}")
    error.__cause__ = end.error
    return error
