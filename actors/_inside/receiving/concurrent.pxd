from libc.stdint cimport uint32_t

from callboard._inside.answers.future cimport Future
from callboard._inside.life.flights cimport ConcurrentMessage
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.ref cimport ActorRef
from callboard.scheduling.forward cimport Context

cdef void begin_flight(ActorRef ref, object coroutine, Envelope* envelope) noexcept
cdef void resume_flight(ConcurrentMessage flight) noexcept
cdef bint interrupt_flight(ConcurrentMessage flight, Future asked) noexcept
cdef void launch_begun(ActorRef ref, list begun) noexcept
