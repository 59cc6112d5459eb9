from callboard._inside.answers.future cimport Future
from callboard._inside.sending.ref cimport ActorRef

cdef object answer_with(ActorRef ref, Future asked, object answer)
