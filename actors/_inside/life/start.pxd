from callboard._inside.answers.future cimport Future
from callboard._inside.sending.ref cimport ActorRef
from callboard.scheduling.forward cimport Context

cdef object construct(ActorRef ref, Context* context)
cdef void note_started(ActorRef ref) noexcept
cdef void promise_start(ActorRef ref, Future future) noexcept
