from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.ref cimport ActorRef

cdef void begin(ActorRef ref, object coroutine, Envelope* envelope) noexcept
cdef void resume(ActorRef ref) noexcept
cdef void interrupt(ActorRef ref) noexcept
cdef void begin_start(ActorRef ref, object coroutine) noexcept
cdef void begin_leaving(ActorRef ref) noexcept
cdef void begin_task(ActorRef ref) noexcept
