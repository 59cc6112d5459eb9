from callboard._inside.sending.ref cimport ActorRef, Extra

cdef void set_awaited(Extra extra, object awaited) noexcept
cdef void end_suspension(ActorRef ref) noexcept
cdef void close_coroutine(ActorRef ref, object error) noexcept
