from callboard._inside.sending.letter cimport Letter
from callboard._inside.sending.ref cimport ActorRef

cdef void fail_message(ActorRef ref, object error, Letter letter) noexcept
cdef void fail(ActorRef ref, object error, object message) noexcept
