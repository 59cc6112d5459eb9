from libc.stdint cimport int64_t, uint32_t

from callboard._inside.answers.future cimport Future
from callboard._inside.answers.waiters cimport Waiter
from callboard._inside.sending.envelope cimport ActorCell, Envelope
from callboard._inside.sending.runtime cimport Runtime
from callboard._inside.sending.stored_envelope cimport StoredEnvelope
from callboard.scheduling.forward cimport Context


cdef enum Phase:
    FRESH       # to be constructed at its first dispatch
    LIVE
    SUSPENDED   # in the middle of an `async def receive`, or backing off before a restart
    RESTARTING  # waits for its children to end, then starts anew
    STOPPING    # waits for its children to end, then closes
    CLOSED


cdef class Recipe:
    # The recipe of an actor, used at its start and at each restart; one per class where there are no arguments and
    # no options.
    cdef readonly object cls
    cdef readonly tuple args
    cdef readonly dict kwargs
    cdef readonly object supervision
    # Facts about the class.
    cdef dict defaults            # the options that it has as attributes
    cdef object receive           # a plain function to call with (actor, message), or None
    cdef bint many, starts, stops, fails, native
    cdef bint runs               # a task: run() is called once, in place of receive()
    cdef bint event_loop         # an option: coroutines of its handlers run on the system's event loop
    cdef uint32_t concurrency    # an option: how many messages it may have in the middle
    cdef bint has_async_options  # one of these two options is not the usual one


cdef class Watches:
    # Those that wait for the actor's start and its end, and those whose end it waits for.
    cdef list starts               # futures of its start, which has not been yet
    cdef dict watchers             # refs and futures, in their order: a replay tells them in the same one
    cdef dict watching             # refs, likewise
    cdef Py_ssize_t most_watching  # with more of them it checks which have ended


cdef class TimersOfActor:
    cdef object all               # WeakSet
    cdef object keyed             # WeakValueDictionary of those that have a key


cdef class Concurrency:
    # The state of an actor that may be in the middle of several messages: see life/unfinished.pyx.
    cdef dict messages            # the ConcurrentMessages, in their order
    cdef list fences              # which wait for the messages before them
    cdef object step_lock         # the StepLock of one whose messages run on the event loop, or None
    cdef object ends_by           # the error that restarts it, once these messages are over
    cdef bint ends                # it stops or restarts, once they are over
    cdef bint closes              # what comes is a dead letter, and it stops once they are over
    cdef bint lets_others_run     # one of them wants that


cdef class Extra:
    # State that only some actors have. A feature that few of these use has an object of its own. The rest is here
    # because several threads read it together, in one critical section, or each message of a coroutine uses it.
    cdef Watches watches          # or None, as the next two
    cdef TimersOfActor timers
    cdef Concurrency concurrency
    cdef set resources            # what ends with it: see OwnedResource in life/ending.pyx
    cdef dict deferred            # asks that wait for futures of the actor's own: see life/ending.pyx
    # Its handlers, and messages beside the mailbox.
    cdef list behaviours          # (handler, bound) below the current one
    cdef list stash               # StoredEnvelopes
    cdef object replay            # a deque of StoredEnvelopes, to be handled before the mailbox
    cdef bint skips               # a cancelled ask may be in the mailbox: see mailbox_take.pyx
    # Its restarts.
    cdef object restarts          # times of the latest ones
    cdef bint backing_off         # one waits for its timer
    # The coroutine in the middle, of an `async def receive` or hook.
    cdef object coroutine
    cdef object awaited           # the future that it waits for
    cdef StoredEnvelope stored    # the message that it handles
    cdef bint stashed             # which waits for its second turn already
    cdef bint yields              # it lets others run, and goes on
    cdef bint detached            # it counts as waiting
    cdef object leaving           # the coroutine of its `async def on_stop`, until that has ended
    # Its work and its waits outside of its dispatch.
    cdef object loop_task         # what the event loop does for it: see loop_task.pyx
    cdef object outgoing          # what it sent there to full mailboxes, if some waits: see pending_sends.pyx
    cdef object awaited_there     # what it waits for on the event loop, or in a thread of its own
    cdef int64_t step_since       # when the step of its code began that the event loop runs now; 0: none
    cdef object full              # the actor at which it waits for room, on a worker's thread

    cdef Watches watches_now(self)
    cdef Concurrency concurrency_now(self)
    cdef int replay_first(self, list envelopes) except -1
    cdef int replay_last(self, object stored) except -1


cdef enum TakeResult:
    NOTHING
    MESSAGE
    UNFIT      # a message had no place in the order: see Intake.unfit


cdef class Intake:
    # The part of a kind of mailbox beyond its queue: see state.pyx.
    cdef bint knows_timers     # by Carried.is_of_timer
    cdef StoredEnvelope unfit  # the last message that had no place
    cdef object misfit         # and the exception that says why

    cdef TakeResult take(self, ActorCell* cell, Context* context, Envelope* envelope) noexcept
    cdef bint is_empty(self) noexcept
    cdef list take_all(self, ActorCell* cell)


cdef class ActorHandle(Waiter):
    # An actor's identity and state. Its messages go to ActorRef, of which every handle is one.
    cdef Phase phase
    cdef bint starting            # its `async def on_start` is in work
    cdef Recipe recipe
    cdef readonly ActorHandle parent
    cdef Runtime runtime
    cdef str own_name
    cdef str ending               # how it ended, if no failure was the reason: see failures.py
    cdef dict children_of
    cdef Extra extra

    cdef Extra extras(self)
    cdef Extra extra_now(self)
    cdef object wait_cause(self)
    cdef object note_wait(self, Future awaited)
    cdef bint is_waited_for(self, Context* context) noexcept
    cdef bint is_run_here(self) except -1
    cdef void mark_closed(self) noexcept
