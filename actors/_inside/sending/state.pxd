from libc.stdint cimport int64_t, uint32_t

from callboard._inside.sending.letter cimport Letter


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
    cdef bint runs                # a task: run() is called once, in place of receive()
    cdef bint event_loop          # an option: coroutines of its handlers run on the system's event loop
    cdef uint32_t concurrency     # an option: how many messages it may have in the middle
    cdef bint apart               # one of these two options is not the usual one


cdef class Extra:
    # State that only some actors have.
    cdef list behaviours          # (handler, bound) below the current one
    cdef list stash               # Letters
    cdef object replay            # a deque of Letters, to be handled before the mailbox
    cdef dict watchers            # refs and futures, in their order: a replay tells them in the same one
    cdef list ready               # futures of its start, which has not been yet
    cdef dict watching            # likewise
    cdef Py_ssize_t most_watching  # with more of them it looks who has ended
    cdef object timers            # WeakSet
    cdef object keyed             # WeakValueDictionary of those timers that have a key
    cdef object restarts          # times of the latest restarts
    cdef object coroutine         # of an `async def receive` in the middle
    cdef object awaited           # the future that it waits for
    cdef Letter letter            # that it handles
    cdef bint stashed             # which waits for its second turn already
    cdef bint yields              # it lets others run, and goes on
    cdef bint skips               # a cancelled ask may be in the mailbox: see waiting.pyx
    cdef bint backing_off         # a restart waits for its timer
    cdef bint detached            # the coroutine in the middle counts as waiting
    cdef object errand            # what the event loop does for it: see errand.pyx
    cdef object outgoing          # what it sent there to full mailboxes, if some waits: see outgoing.pyx
    cdef object leaving           # the coroutine of its `async def on_stop`, until that has ended
    cdef dict flights             # those of its messages that are in the middle, if there may be many: see flights.pyx
    cdef list fences              # which wait for the messages before them: see flights.pyx
    cdef object ends_by           # the error that restarts it, once its flights are over
    cdef bint ends                # it stops or restarts, once its flights are over
    cdef bint closes              # what comes is a dead letter, and it stops once these are over
    cdef bint lets_others_run     # a flight wants that
    cdef object access            # who may run its code: see access.pyx
    cdef object awaited_there     # what it waits for on the event loop, or in a thread of its own
    cdef int64_t step_since       # when the step of its code began that the event loop runs now; 0: none
    cdef object full         # the actor at which it waits for room, on a worker's thread
    cdef set held                 # what ends with it: see held.pyx
    cdef dict owed                # asks that wait for futures of the actor's own: see owed.pyx

    cdef int replay_first(self, list letters) except -1
    cdef int replay_last(self, object letter) except -1
