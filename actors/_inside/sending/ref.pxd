from callboard._inside.answers.future cimport Future, Waiter
from callboard._inside.sending.dead_lettering cimport Fate
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.intake cimport Intake
from callboard._inside.sending.letter cimport Letter
from callboard._inside.sending.runtime cimport Runtime
from callboard._inside.sending.state cimport CLOSED, FRESH, LIVE, RESTARTING, STOPPING, SUSPENDED, Extra, Phase, Recipe
from callboard._inside.sending.system_kind cimport SystemKind
from callboard._inside.sending.unsent cimport Unsent
from callboard.core.memory.node cimport Node
from callboard.scheduling.forward cimport Context


cdef class ActorRef(Waiter):
    cdef object instance
    cdef object handler
    cdef bint bound               # handler takes (message), not (actor, message)
    cdef Phase phase
    cdef bint starting            # its `async def on_start` is in work
    cdef bint kept                # closed, and ready once at least: see dispatch.dead_letter_all()
    cdef bint detour              # messages come from more than the queue: replay, intake, dropping
    cdef Intake intake            # of the mailbox's kind; None for one that is first in, first out
    cdef Recipe recipe
    cdef readonly ActorRef parent
    cdef Runtime runtime
    cdef str own_name
    cdef str ending               # how it ended, if no failure was the reason: see failures.py
    cdef dict children_of
    cdef Extra extra
    cdef object hired             # the worker of its own; who woke it may unpark it after its end
    cdef object __weakref__

    cdef Extra extras(self)
    cdef Extra extra_now(self)
    cdef tuple waits(self)
    cdef object note_wait(self, Future awaited)
    cdef int send(self, Envelope envelope, Context* context) except -1
    cdef int send_slowly(self, Envelope envelope, Context* context) except -1
    cdef Future asend(self, Envelope envelope, Context* context)
    cdef Unsent have_wait(self, Envelope* envelope)
    cdef bint is_run_here(self) except -1
    cdef Fate take_room(self, Context* context) noexcept
    cdef bint is_waited_for(self, Context* context) noexcept
    cdef bint is_admitted(self, Fate found, Envelope* envelope, Context* context) except -1
    cdef int push_with(self, object variables, Envelope envelope, Context* context) except -1
    cdef int push_watched(self, Envelope envelope, Context* context) except -1
    cdef Node* take_node(self, Context* context) except NULL
    cdef void make_sample(self, Node* node, Envelope* envelope, Context* context) noexcept
    cdef int push_letter(self, Letter letter, object variables, Context* context) except -1
    cdef void send_system(self, SystemKind kind, object first, object second) noexcept
    cdef void put_back(self, list letters) noexcept
    cdef Future send_fence(self, type kind)
    cdef Future future_of(self, SystemKind kind, bint is_rest)
    cdef void wake(self, Context* context) noexcept
    cdef void wake_closed(self, Context* context) noexcept
    cdef void mark_closed(self) noexcept


cdef object no_system(actor)
