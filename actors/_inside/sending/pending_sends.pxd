from callboard._inside.answers.future cimport Future
from callboard._inside.sending.state cimport ActorHandle
from callboard._inside.sending.stored_envelope cimport StoredEnvelope
from callboard.scheduling.handle cimport Handle


cdef class Unsent(Future):
    # The messages of one call that wait for room outside a full mailbox. Done when all are sent.
    cdef object messages      # a deque of (StoredEnvelope, variables), the next in front
    cdef object to            # a weak reference to the receiver

    cdef object take_all(self)


cdef Future SENT              # of messages that were sent at once
cdef Future BEHIND            # likewise; the await lets the messages go first that the actor sent to full mailboxes

cdef bint is_awaited(Handle to) except -1
cdef Unsent wait_outside(Handle to, object timers, StoredEnvelope stored, object variables)
cdef bint wait_behind(Unsent unsent, StoredEnvelope stored, object variables) except -1


cdef class Outgoing:
    # The messages that an actor on the event loop has sent to full mailboxes, and their waiters.
    cdef object loop          # of asyncio
    cdef object messages      # a deque of (ActorHandle, StoredEnvelope, variables, loop_task), in the order of sending
    cdef object fence         # of the first one's receiver: the future that says that there may be room
    cdef object timer         # for the first one
    cdef dict steps           # those that wait -> the futures of asyncio that they yield, in their order
    cdef dict refusals        # loop_task -> a MailboxFull that it is to be told of
    cdef list ends            # what to call when nothing waits any more

    cdef int add(self, ActorHandle to, StoredEnvelope stored, object variables, object loop_task) except -1
    cdef bint holds_back(self, object step) except -1
    cdef object wait(self, object step)
    cdef int let_go_on(self, object step) except -1
    cdef bint is_over(self) except -1
    cdef object take_refusal(self, object loop_task)
    cdef int send_all(self) except -1
    cdef bint send(self, tuple entry, bint past_capacity) except -1
    cdef int wait_for_first(self) except -1
    cdef int send_on(self) except -1
    cdef int refuse(self, tuple entry, object error) except -1
    cdef int forget_first(self) except -1
    cdef int resume_first_step(self) except -1
