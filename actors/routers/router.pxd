from libc.stdint cimport uint64_t

from callboard._inside.sending.ref cimport ActorRef


cdef class Routee:
    # One of a router's recipients. The router's critical section guards the numbers.
    cdef readonly object recipient
    cdef ActorRef ref          # the recipient, if it is an actor of this process; else None
    cdef Py_ssize_t messages   # chosen for it, by calls that have not handed them over yet
    cdef Py_ssize_t asks       # that it has not answered, where the router counts them
    cdef bint removed          # by a resize; no more messages are chosen for it
    cdef bint is_native        # `ref` is a NativeRef

    cdef bint has_ended(self) noexcept
    cdef Py_ssize_t load(self) noexcept


cdef class Router:
    cdef tuple routees
    cdef public object _family  # of the routees that it has spawned; None for refs that it was given
    cdef object __weakref__

    cdef uint64_t key_of(self, message) except? 0
    cdef Routee pick(self, uint64_t key)
    cdef int note_asked(self, Routee routee, future) except -1
    cdef Routee enter(self, message)
    cdef int check_made(self) except -1
    cdef tuple routees_now(self)
    cdef int assign(self, dict parts, message) except -1
    cdef int hand_over(self, dict parts) except -1
