from callboard._inside.sending.ref cimport ActorRef
from callboard.scheduling.cell cimport Context

cdef void begin(ActorRef ref, object coroutine, object message, object second, bint asked,
                Context* context) noexcept
cdef void resume(ActorRef ref, Context* context) noexcept
cdef void close_coroutine(ActorRef ref, object error) noexcept
