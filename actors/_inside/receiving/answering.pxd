from callboard._inside.answers.future cimport Future
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.ref cimport ActorRef


cdef object answer_with(ActorRef ref, Future asked, object answer)


cdef void finish(ActorRef ref, Envelope* envelope, object answer) noexcept
cdef object with_advice(ActorRef ref, object raised)
