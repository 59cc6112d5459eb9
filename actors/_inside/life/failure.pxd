from callboard._inside.answers.future cimport Future
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.stored_envelope cimport StoredEnvelope
from callboard.scheduling.forward cimport Context

cdef void fail_in_work(ActorRef ref, object error, Envelope* envelope) noexcept
cdef bint is_expected(ActorRef ref, object error) noexcept
cdef void fail_message(ActorRef ref, object error, StoredEnvelope stored) noexcept
cdef void fail_start(ActorRef ref, object error) noexcept
cdef void fail(ActorRef ref, object error, object message) noexcept

cdef object construct(ActorRef ref, Context* context)
cdef void note_started(ActorRef ref) noexcept
cdef void promise_start(ActorRef ref, Future future) noexcept
