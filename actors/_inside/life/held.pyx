"""Things that belong to an actor, and end with it."""

from callboard._inside.sending.ref cimport ActorRef


cdef class Held:
    """A thing in an actor's `Extra.held`."""

    def _forbid(self):
        """Make every further use an error: the actor is a copy in a forked process."""

    cdef int belong_to(self, ActorRef ref) except -1:
        """The thing is an argument of the actor's spawn. Raises an error if it is somebody else's."""
        return 0

    cdef void part(self) noexcept:
        """The actor will not be: the thing is free again."""
        pass

    cdef void let_go(self, object failure) noexcept:
        """The actor has ended, by `failure` if that is not None. Runs in its last dispatch."""
        pass

    def _figures(self):
        """Return the figures of it for statistics; None: it has none. In any thread."""
        return None
