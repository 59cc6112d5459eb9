from callboard._inside.sending.ref cimport ActorRef

cdef void begin_restart(ActorRef ref, object error) noexcept
cdef void begin_stop(ActorRef ref) noexcept
cdef void go_on_ending(ActorRef ref) noexcept
cdef void end_backing_off(ActorRef ref) noexcept
cdef void leave_parent(ActorRef ref) noexcept
cdef void tell_ended(ActorRef ref, object watcher) noexcept
cdef void end_after_flights(ActorRef ref) noexcept
cdef void note_left(ActorRef ref, object error) noexcept
