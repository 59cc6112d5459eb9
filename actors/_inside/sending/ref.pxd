from cpython.ref cimport PyObject
from libc.stdint cimport uint32_t, uint64_t

from callboard.core.node cimport Kind, Node
from callboard.scheduling.cell cimport Cell, Context
from callboard.scheduling.handle cimport Handle
from callboard._inside.sending.runtime cimport Runtime


cdef class Recipe:
    # What an actor is made from, at its start and at each restart; one per class where there are no
    # arguments and no options.
    cdef readonly object cls
    cdef readonly tuple args
    cdef readonly dict kwargs
    cdef readonly object supervision
    cdef readonly object key      # of a prioritised mailbox
    # Facts about the class.
    cdef object receive           # a plain function to call with (actor, message), or None
    cdef bint many, starts, stops, fails, native
    cdef bint event_loop          # an option: coroutines of its handlers run on the system's event loop


cdef object no_system(actor)


cdef enum Phase:
    FRESH       # to be constructed at its first dispatch
    LIVE
    SUSPENDED   # in the middle of an `async def receive`, or backing off before a restart
    RESTARTING  # waits for its children to end, then starts anew
    STOPPING    # waits for its children to end, then closes
    CLOSED


cdef class Extra:
    # What only some actors have.
    cdef list behaviours          # (handler, bound) below the current one
    cdef list stash               # (message, second, asked)
    cdef object replay            # deque of the same, to be handled before the mailbox
    cdef dict watchers            # refs, in their order: a replay tells them in the same one
    cdef dict watching            # likewise
    cdef object timers            # WeakSet
    cdef object restarts          # times of the latest restarts
    cdef object coroutine         # of an `async def receive` in the middle
    cdef object awaited           # the future that it waits for
    cdef object message           # that it handles
    cdef object sender            # of it, or the future that wants its answer
    cdef bint asked               # which of the two
    cdef bint put_aside           # it was stashed
    cdef list heap                # of a prioritised mailbox
    cdef uint64_t arrivals
    cdef bint backing_off         # a restart waits for its timer
    cdef bint detached            # the coroutine in the middle counts as waiting
    cdef object errand            # what the event loop does for it: see errand.pyx
    cdef object awaited_there     # what it waits for on the event loop, or in a thread of its own
    cdef dict owed                # asks that wait for futures of the actor's own: see answering.pyx


cdef class Carried:
    # In the place of a message's sender, for a receiver that wants its context variables, too.
    cdef object sender
    cdef object variables         # a copy of the sender's Context


cdef class ActorRef(Handle):
    cdef object instance
    cdef object handler
    cdef bint bound               # handler takes (message), not (actor, message)
    cdef Phase phase
    cdef bint kept                # closed, and ready once at least: see dispatch.bury_all()
    cdef bint detour              # messages come from more than the queue: replay, heap, dropping
    cdef Recipe recipe
    cdef readonly ActorRef parent
    cdef Runtime runtime
    cdef str own_name
    cdef dict children_of
    cdef Extra extra
    cdef object hired             # the worker of its own; who woke it may unpark it after its end
    cdef object __weakref__

    cdef Extra extras(self)
    cdef object awaited(self)
    cdef int send(self, Kind kind, PyObject* first, PyObject* second, Context* context) except -1
    cdef void signal(self, Kind kind, object first, object second) noexcept
    cdef void enqueue(self, Kind kind, object message, object second, Context* context) noexcept
    cdef object with_variables(self, Kind kind, object second, object variables)
    cdef int send_slowly(self, Kind kind, PyObject* first, PyObject* second, Context* context) except -1
    cdef bint may_send(self, Kind kind, object message, object second, Context* context) except -1
    cdef int post_dead(
        self, object message, object second, bint asked, str reason, object error, object answer) except -1
    cdef void publish(self, Node* first, Node* last, Context* context) noexcept
    cdef void wake(self, Context* context) noexcept
    cdef void wake_closed(self, Context* context) noexcept


cdef object sender_of(object second, bint asked)
cdef object current_variables()
