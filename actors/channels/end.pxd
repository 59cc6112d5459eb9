cimport cython

from callboard._inside.life.ending cimport OwnedResource
from callboard._inside.sending.ref cimport ActorRef
from callboard.channels.activity cimport EndActivity
from callboard.channels.pipe cimport Pipe, ChannelSide
from callboard.scheduling.context cimport current_context
from callboard.scheduling.forward cimport Cell, Context


cdef class ChannelEnd(OwnedResource):
    # One side of a channel, used by one user.
    cdef Pipe pipe
    cdef void* user          # an actor's cell, or a thread's context: only compared
    cdef bint closed         # by its own user
    cdef bint spent          # another end took its place: see replace()
    cdef bint accounted      # monitoring counts it
    cdef str user_name
    cdef ActorRef owner      # the actor, if it is one
    cdef ActorRef known      # the actor that the end belongs to, as the side's `users` have it
    cdef EndActivity activity
    cdef object __weakref__

    cdef ChannelSide side(self)
    cdef bint is_sender(self) noexcept
    @cython.final
    cdef inline int use(self) except -1:
        """Raise ChannelOwnershipError if the end belongs to another user. The first user becomes its owner."""
        cdef Context* context = current_context()
        cdef Cell* current = context.current
        cdef void* user = <void*>context if current == NULL else <void*>current
        if self.user != user:
            self.bind(context, user)
        if self.accounted:
            self.activity.begin(context)
        return 0

    cdef int bind(self, Context* context, void* user) except -1
    cdef int refuse_another(self, str name) except -1
    cdef void set_known(self, ActorRef ref) noexcept
    cdef bint is_ready(self) noexcept
    cdef bint is_done(self) noexcept
    cdef object closing(self)
