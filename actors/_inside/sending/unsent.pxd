from callboard._inside.answers.future cimport Future
from callboard._inside.sending.letter cimport Letter
from callboard.scheduling.handle cimport Handle


cdef class Unsent(Future):
    # The messages of one call that wait for room outside a full mailbox. Done when all are sent.
    cdef object letters       # a deque of (Letter, variables), the next in front
    cdef object to            # a weak reference to the receiver

    cdef object take_all(self)


cdef Future SENT              # of messages that were sent at once
cdef Future BEHIND            # likewise; the await lets the messages go first that the actor sent to full mailboxes

cdef bint is_awaited(Handle to) except -1
cdef Unsent wait_outside(Handle to, object timers, Letter letter, object variables)
cdef bint wait_behind(Unsent unsent, Letter letter, object variables) except -1
