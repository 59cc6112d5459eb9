from callboard._inside.sending.ref cimport ActorRef
from callboard.scheduling.forward cimport Context

cdef void construct(ActorRef ref, Context* context) noexcept
