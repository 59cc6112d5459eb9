from callboard._inside.sending.letter cimport Letter
from callboard._inside.sending.ref cimport ActorRef


cdef class Outgoing:
    # The messages that an actor on the event loop has sent to full mailboxes, and their waiters.
    cdef object loop          # of asyncio
    cdef object letters       # a deque of (ActorRef, Letter, variables, errand), in the order of their sending
    cdef object fence         # of the first one's receiver: the future that says that there may be room
    cdef object timer         # for the first one
    cdef dict steps           # those that wait -> the futures of asyncio that they yield, in their order
    cdef dict refusals        # errand -> a MailboxFull that it is to be told of
    cdef list ends            # what to call when nothing waits any more

    cdef int add(self, ActorRef to, Letter letter, object variables, object errand) except -1
    cdef bint holds_back(self, object step) except -1
    cdef object wait(self, object step)
    cdef int let_go_on(self, object step) except -1
    cdef bint is_over(self) except -1
    cdef object take_refusal(self, object errand)
    cdef int send_all(self) except -1
    cdef bint send(self, tuple entry, bint past_capacity) except -1
    cdef int wait_for_first(self) except -1
    cdef int send_on(self) except -1
    cdef int refuse(self, tuple entry, object error) except -1
    cdef int forget_first(self) except -1
    cdef int resume_first_step(self) except -1
