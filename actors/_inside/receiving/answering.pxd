from callboard._inside.answers.future cimport Future
from callboard._inside.sending.ref cimport ActorRef

cdef object answer_with(ActorRef ref, Future asked, object answer)
cdef void fail_owed(ActorRef ref, object error) noexcept
cdef object note_wait(ActorRef ref, object awaited)
cdef object circle(ActorRef ref, Future asked, Future awaited)
