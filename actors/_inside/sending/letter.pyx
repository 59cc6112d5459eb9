"""Letters: messages that are neither in a mailbox nor in work; dead ones are never handled."""

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

    @property
    def _wait_cause(self):
        return WaitCause(WaitTarget.ANSWER_OF, self.target)


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


# --- dead letters, and the exceptions of their asks ----------------------------------------------------


cdef dict REASONS = {
    STOPPED: "stopped",
    FAILED: "failed",
    DROPPED_NEWEST: "dropped_newest",
    DROPPED_OLDEST: "dropped_oldest",
    REFUSED: "refused",
    CANCELLED: "cancelled",
}


cdef int dead_letter(Handle to, Runtime runtime, Letter letter, Fate fate, object error=None) except -1:
    """Make a dead letter. The asking side gets an exception, `error` if there is one, after the letter is posted."""
    cdef Envelope envelope = letter.lend()
    assert holds(fate in REASONS)
    if letter.message is RUN:
        return 0
    if letter.message is FENCE:  # it is no message of anybody's
        assert holds(letter.reply_to is not None)
        letter.reply_to.complete(None, answer_of(to, runtime, fate))
        return 0
    reason = REASONS[fate]
    if fate == STOPPED:
        end = runtime.dead_letters.end_of(to)
        if end.reason.startswith("system"):
            reason = "system stopped"
        elif error is None and end.cause is not None:
            error = stopped(to, runtime)
    try:
        runtime.dead_letters.post(letter.message, to, sender_of(&envelope), reason, error)
    finally:
        if letter.reply_to is not None:
            letter.reply_to.complete(None, error if error is not None else answer_of(to, runtime, fate))
    return 0


cdef void dead_letter_and_go_on(
    Handle to, Runtime runtime, Letter letter, Fate fate, object error=None
) noexcept:
    """dead_letter(), where no caller can handle its failure: that is logged."""
    try:
        dead_letter(to, runtime, letter, fate, error)
    except BaseException as another:
        log.error("a dead letter could not be posted", actor=to._short_path, exc_info=another)


cdef object answer_of(Handle to, Runtime runtime, Fate fate):
    """Return the exception for who asked."""
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
