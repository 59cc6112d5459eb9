from callboard._inside.answers.future cimport Future
from callboard._inside.answers.waiters cimport Wake
from callboard._inside.sending.ref cimport ActorRef, Extra
from callboard._inside.sending.stored_envelope cimport StoredEnvelope
from callboard.scheduling.team cimport Team


cdef void set_awaited(Extra extra, object awaited) noexcept
cdef void end_suspension(ActorRef ref) noexcept
cdef int rest_until(Future future, Team team) except -1
cdef void close_coroutine(ActorRef ref, object error) noexcept


cdef class TaskElsewhere:
    # Work on an actor's message elsewhere than in the actor's dispatch.
    cdef bint cancel(self) noexcept
    cdef bint recall(self) noexcept


cdef class ConcurrentMessage(Wake):
    # A message that an actor has in the middle, beside others: see coroutine.pyx.
    cdef ActorRef ref
    cdef StoredEnvelope stored
    cdef object coroutine         # None when it is over
    cdef object awaited           # the future that it waits for
    cdef object variables         # the context of the message while its code does not run; or None
    cdef TaskElsewhere loop_task  # what the event loop does for it, or None
    cdef bint stashed             # the message waits for its second turn already
    cdef bint counted             # it keeps the system from idleness
    cdef bint failed              # on the event loop, and the worker has not heard of that

    cdef void count(self, bint counted) noexcept


cdef void add_concurrent(ConcurrentMessage message) noexcept
cdef void end_concurrent(ConcurrentMessage message) noexcept
cdef bint waits_for_concurrent(ActorRef ref, object error) noexcept
cdef void pass_fence_after_concurrent(ActorRef ref, StoredEnvelope stored) noexcept
cdef void recall(ActorRef ref) noexcept
cdef void hold_for_failure(ConcurrentMessage message) noexcept
cdef void lose(ConcurrentMessage message, object error) noexcept


cdef class StepLock:
    # The right to run an actor's code, of one at a time: the dispatch on a worker, or a step on the event loop.
    cdef object lock          # of threading: its owner may
    cdef object loop          # of asyncio, once a step had to wait
    cdef dict waiting         # step -> the future of asyncio that it waits for, in the order in which they came
    cdef list begun           # loop tasks that the dispatch in work leaves to the loop
    cdef dict unbegun         # concurrent messages of which the loop has run nothing yet, in their order
    cdef int failed           # concurrent messages that have failed on the loop, of which the worker has not heard

    cdef object enter_on_loop(self, object step)
    cdef void leave_on_loop(self) noexcept
    cdef void enter_on_worker(self) noexcept
    cdef void leave_on_worker(self) noexcept
    cdef bint try_enter(self, object step) except -1
    cdef int let_go_on(self, object step) except -1


cdef class Checkpoint(Future):
    pass
