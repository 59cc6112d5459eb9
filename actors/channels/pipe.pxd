cimport cython
from cpython.object cimport PyObject
from libc.stdint cimport int64_t

from callboard._inside.sending.ref cimport ActorRef
from callboard._inside.sending.runtime cimport Runtime
from callboard.channels.object_channel cimport ObjectChannel, SideWakeable


cdef class Line:
    # A queue of users that wait. `wait` is a ChannelWait or a Watch.
    cdef readonly bint sends     # they wait for room, not for values

    cdef bint is_input(self) noexcept
    cdef bint join(self, object wait) except -1
    cdef void leave(self, object wait) noexcept


cdef class Watch:
    # The place of a selection in a queue: wake() wakes the selection.
    cdef readonly object end

    cdef void wake(self) noexcept


cdef class ChannelSide(Line):
    cdef void* pipe              # borrowed: it has the side
    cdef SideWakeable* waiter
    cdef object first            # the first wait, or None
    cdef list others
    cdef Py_ssize_t ends         # that are open
    cdef list users              # the actors that open ends belong to, once for each end
    cdef bint is_noted           # it is in the list of the search for circles

    cdef object advance(self)
    cdef list waits(self)
    cdef bint has(self, object end) noexcept
    cdef bint is_waited_at(self) noexcept
    cdef void wake_next(self) noexcept
    cdef void wake_all(self) noexcept
    cdef list dissolve(self)
    cdef bint announce(self) noexcept
    cdef void withdraw(self) noexcept


cdef void wake(object wait) noexcept


cdef class Pipe:
    cdef ObjectChannel* channel
    cdef readonly ChannelSide senders
    cdef readonly ChannelSide receivers
    cdef bint is_rendezvous
    cdef Runtime runtime         # of the actors that use it; None before
    cdef readonly int64_t number
    cdef bint grows
    cdef int64_t offers          # at capacity 0: how many offers were not taken back
    cdef bint is_offered         # a Send waits until its offer is taken
    cdef object failure          # of the sender's task
    cdef str failed_by

    cdef void wake_noted(self) noexcept
    @cython.final
    cdef void wake_senders(self) noexcept
    @cython.final
    cdef void wake_receivers(self) noexcept
    cdef void add_end(self, ChannelSide side) noexcept
    cdef int join_system(self, ActorRef ref) except -1
    cdef bint try_put(self, object value) except -1
    cdef bint take(self, PyObject** value) noexcept
    cdef object try_take(self, object nothing)
    cdef object look(self, object nothing)
    cdef object look_into_slot(self, object nothing)
    cdef int64_t offer(self, object value) except -1
    cdef bint was_taken(self, int64_t offer) noexcept
    cdef bint retract(self, int64_t offer) except -1
    cdef bint has_room(self) noexcept
    cdef bint has_values(self) noexcept
    cdef bint takes_values(self) noexcept
    cdef bint is_over(self) noexcept
    cdef bint is_forked(self) noexcept
    cdef void end_sender(self, object failure, str failed_by) noexcept
    cdef void end_receiver(self) noexcept
    cdef void leave_receiver(self, bint is_closed, str reason, object receiver) noexcept
    cdef void cancel(self, str reason, object receiver) noexcept
    cdef void drop(self, str reason, object receiver) noexcept
    cdef void grow(self) noexcept
    cdef void empty(self) noexcept
