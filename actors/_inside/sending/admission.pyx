"""Admission to a mailbox: each message that does not simply find room passes here."""

from callboard._inside.sending.actor_cell cimport ActorCell
from callboard._inside.sending.dead_lettering cimport dead_letter
from callboard._inside.sending.overflow cimport Overflow
from callboard.core.asserting cimport holds

from callboard.core.errors import ForkedSystem


cdef Fate admit(Handle to, Runtime runtime, Fate found, Context* context) except? FULL:
    """Say whether a message may be sent, after a look_in() that `found` how it is. If not, why not.

    Raises MailboxFull as the overflow policy says, ForkedSystem, TypeError for a task, and what a signal raises
    (Ctrl-C) while this waits for room.
    """
    if found == FULL:
        assert holds((<ActorCell*>to.cell).overflow != NULL)
        return (<Overflow>(<ActorCell*>to.cell).overflow).make_room(to, runtime, context)
    if found == FORKED:
        raise ForkedSystem(
            f"{to._short_path} lives in the process that made its system; make one in this process")
    if found == MISSENT:
        raise TypeError(f"{to._short_path} is a task, and takes no messages: send into its channels")
    return found


cdef bint admit_or_dead_letter(Handle to, Runtime runtime, Fate found, Letter letter, Context* context) except -1:
    """The same for a message of which the sender is told by an exception, and who asked by the future.

    False: it is not to be sent.
    """
    cdef Fate fate
    try:
        fate = admit(to, runtime, found, context)
    except BaseException as error:
        if letter.reply_to is None:
            raise
        letter.reply_to.complete(None, error)
        if found == FORKED or found == MISSENT or not isinstance(error, Exception):
            raise  # Ctrl-C while it waited for room is not only the future's business
        return False
    assert holds(found != ADMITTED)
    if fate == ADMITTED:
        return True
    dead_letter(to, runtime, letter, fate)
    return False
