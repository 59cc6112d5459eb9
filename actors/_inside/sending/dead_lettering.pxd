from callboard._inside.sending.letter cimport Letter
from callboard._inside.sending.runtime cimport Runtime
from callboard.scheduling.handle cimport Handle


# The fate of a message.
cdef enum Fate:
    ADMITTED        # it has its room in the mailbox
    FULL            # it has to wait for that, or whatever the mailbox's overflow policy says
    FORKED          # it was sent to the copy of an actor in a child process
    MISSENT         # it was sent to a task, which takes no messages
    # Dead letters, from here on:
    STOPPED         # the actor has stopped, or does so before the message's turn
    FAILED          # handling it failed
    DROPPED_NEWEST  # by a full mailbox
    DROPPED_OLDEST
    CANCELLED       # its asker cancelled the ask
    REFUSED         # by a full mailbox, and who sent it cannot be raised at


cdef int dead_letter(Handle to, Runtime runtime, Letter letter, Fate fate, object error=*) except -1
cdef void dead_letter_and_go_on(Handle to, Runtime runtime, Letter letter, Fate fate, object error=*) noexcept
cdef object stopped(Handle to, Runtime runtime, str more=*)
