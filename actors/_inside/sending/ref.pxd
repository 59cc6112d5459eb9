from callboard._inside.answers.future cimport Future
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.pending_sends cimport Unsent
from callboard._inside.sending.state cimport (
    CLOSED, FRESH, LIVE, RESTARTING, STOPPING, SUSPENDED, ActorHandle, Extra, Intake, Phase, Recipe,
)
from callboard._inside.sending.stored_envelope cimport Fate, StoredEnvelope
from callboard._inside.sending.system_kind cimport SystemKind
from callboard.core.memory.node cimport Node
from callboard.scheduling.forward cimport Context


cdef class ActorRef(ActorHandle):
    cdef object instance
    cdef object handler
    cdef bint bound               # handler takes (message), not (actor, message)
    cdef bint kept                # closed, and ready once at least: see dispatch.dead_letter_all()
    cdef bint detour              # messages come from more than the queue: replay, intake, dropping
    cdef Intake intake            # of the mailbox's kind; None for one that is first in, first out
    cdef object own_worker        # of a dedicated actor; the thread that woke it may unpark it after its end
    cdef object __weakref__

    cdef int send(self, Envelope envelope, Context* context) except -1
    cdef int send_slowly(self, Envelope envelope, Context* context) except -1
    cdef Future asend(self, Envelope envelope, Context* context)
    cdef Unsent have_wait(self, Envelope* envelope)
    cdef Fate take_room(self, Context* context) noexcept
    cdef bint is_admitted(self, Fate found, Envelope* envelope, Context* context) except -1
    cdef int push_with(self, object variables, Envelope envelope, Context* context) except -1
    cdef int push_watched(self, Envelope envelope, Context* context) except -1
    cdef Node* take_node(self, Context* context) except NULL
    cdef void make_sample(self, Node* node, Envelope* envelope, Context* context) noexcept
    cdef int push_stored(self, StoredEnvelope stored, object variables, Context* context) except -1
    cdef void send_system(self, SystemKind kind, object first, object second) noexcept
    cdef void put_back(self, list envelopes) noexcept
    cdef Future send_fence(self, type kind)
    cdef Future future_of(self, SystemKind kind, bint is_rest)
    cdef void wake(self, Context* context) noexcept
    cdef void wake_closed(self, Context* context) noexcept


cdef object no_system(actor)
