from libc.stdint cimport uint32_t

from callboard._inside.answers.future cimport Future
from callboard._inside.life.unfinished cimport ConcurrentMessage
from callboard._inside.sending.envelope cimport Envelope
from callboard._inside.sending.ref cimport ActorRef
from callboard.scheduling.forward cimport Context


cdef void begin_concurrent(ActorRef ref, object coroutine, Envelope* envelope) noexcept
cdef void resume_concurrent(ConcurrentMessage message) noexcept
cdef bint interrupt_concurrent(ConcurrentMessage message, Future asked) noexcept
cdef void launch_begun(ActorRef ref, list begun) noexcept


cdef void begin(ActorRef ref, object coroutine, Envelope* envelope) noexcept
cdef void resume(ActorRef ref) noexcept
cdef void interrupt(ActorRef ref) noexcept
cdef void begin_start(ActorRef ref, object coroutine) noexcept
cdef void begin_leaving(ActorRef ref) noexcept
cdef void begin_task(ActorRef ref) noexcept


cdef void finish(ActorRef ref, Envelope* envelope, object answer) noexcept
