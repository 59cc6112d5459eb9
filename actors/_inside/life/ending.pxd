from callboard._inside.answers.future cimport Future
from callboard._inside.sending.ref cimport ActorRef


cdef void begin_restart(ActorRef ref, object error) noexcept
cdef void begin_stop(ActorRef ref) noexcept
cdef void go_on_ending(ActorRef ref) noexcept
cdef void end_backing_off(ActorRef ref) noexcept
cdef void leave_parent(ActorRef ref) noexcept
cdef void tell_ended(ActorRef ref, object watcher) noexcept
cdef void end_after_concurrent(ActorRef ref) noexcept
cdef void note_left(ActorRef ref, object error) noexcept


cdef class OwnedResource:
    cdef int belong_to(self, ActorRef ref) except -1
    cdef void part(self) noexcept
    cdef void let_go(self, object failure) noexcept


cdef int defer_to_own(ActorRef ref, Future asked, Future promise) except -1
cdef void fail_deferred(ActorRef ref, object error) noexcept
