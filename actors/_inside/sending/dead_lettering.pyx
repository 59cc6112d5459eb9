"""The end of a message that is not handled: a dead letter, and an exception for who asked."""

from callboard._inside.sending.letter cimport FENCE, RUN, sender_of
from callboard._inside.sending.envelope cimport Envelope
from callboard.core.asserting cimport holds

from callboard.core.errors import ActorStopped, MailboxFull
from callboard.core.log import log

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
    """dead_letter(), where nobody can be told that it failed."""
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
