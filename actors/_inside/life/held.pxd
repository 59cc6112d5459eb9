from callboard._inside.sending.ref cimport ActorRef


cdef class Held:
    cdef int belong_to(self, ActorRef ref) except -1
    cdef void part(self) noexcept
    cdef void let_go(self, object failure) noexcept
