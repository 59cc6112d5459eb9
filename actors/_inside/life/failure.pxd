from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.stored_envelope cimport StoredEnvelope

cdef void fail_in_work(ActorRef ref, object error, Envelope* envelope) noexcept
cdef bint is_expected(ActorRef ref, object error) noexcept
cdef void fail_message(ActorRef ref, object error, StoredEnvelope stored) noexcept
cdef void fail_start(ActorRef ref, object error) noexcept
cdef void fail(ActorRef ref, object error, object message) noexcept
