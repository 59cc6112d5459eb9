from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.letter cimport Letter
from callboard._inside.sending.ref cimport ActorRef

cdef void fail_in_work(ActorRef ref, object error, Envelope* envelope) noexcept
cdef bint is_expected(ActorRef ref, object error) noexcept
cdef void fail_message(ActorRef ref, object error, Letter letter) noexcept
cdef void fail_start(ActorRef ref, object error) noexcept
cdef void fail(ActorRef ref, object error, object message) noexcept
