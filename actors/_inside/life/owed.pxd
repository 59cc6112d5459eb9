from callboard._inside.answers.future cimport Future
from callboard._inside.sending.ref cimport ActorRef

cdef int owe(ActorRef ref, Future asked, Future promise) except -1
cdef void fail_owed(ActorRef ref, object error) noexcept
