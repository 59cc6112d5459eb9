from callboard._inside.answers.future cimport Future, Wake
from callboard._inside.sending.letter cimport Letter
from callboard._inside.sending.ref cimport ActorRef


cdef class Apart:
    # Work on an actor's message elsewhere than in the actor's dispatch.
    cdef bint cancel(self) noexcept
    cdef bint recall(self) noexcept


cdef class ConcurrentMessage(Wake):
    # A message that an actor has in the middle, beside others: see concurrent.pyx.
    cdef ActorRef ref
    cdef Letter letter
    cdef object coroutine         # None when it is over
    cdef object awaited           # the future that it waits for
    cdef object variables         # the context of the message while its code does not run; None: there is none
    cdef Apart errand             # what the event loop does for it, or None
    cdef bint stashed             # the message waits for its second turn already
    cdef bint counted             # it keeps the system from idleness
    cdef bint failed              # on the event loop, and the worker has not heard of that

    cdef void count(self, bint counted) noexcept


cdef void add_flight(ConcurrentMessage flight) noexcept
cdef void end_flight(ConcurrentMessage flight) noexcept
cdef bint waits_for_flights(ActorRef ref, object error) noexcept
cdef void pass_fence_after_flights(ActorRef ref, Letter letter) noexcept
cdef void recall(ActorRef ref) noexcept
cdef void hold_for_failure(ConcurrentMessage flight) noexcept
cdef void lose(ConcurrentMessage flight, object error) noexcept
