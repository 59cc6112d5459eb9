from callboard._inside.life.held cimport Held
from callboard._inside.sending.ref cimport ActorRef
from callboard.channels.activity cimport EndActivity
from callboard.channels.pipe cimport Pipe, ChannelSide
from callboard.scheduling.forward cimport Context


cdef class ChannelEnd(Held):
    # One side of a channel, in the hands of one user.
    cdef Pipe pipe
    cdef void* user          # an actor's cell, or a thread's context: only compared
    cdef str user_name
    cdef ActorRef owner      # the actor, if it is one
    cdef ActorRef known      # the actor that the end belongs to, as the side's `users` have it
    cdef EndActivity activity
    cdef bint accounted      # monitoring wants it
    cdef bint closed         # by its own user
    cdef bint spent          # another end took its place: see replace()
    cdef object __weakref__

    cdef ChannelSide side(self)
    cdef bint is_sender(self) noexcept
    cdef int use(self) except -1
    cdef int bind(self, Context* context, void* user) except -1
    cdef int refuse_another(self, str name) except -1
    cdef void set_known(self, ActorRef ref) noexcept
    cdef bint is_ready(self) noexcept
    cdef bint is_done(self) noexcept
    cdef object closing(self)
