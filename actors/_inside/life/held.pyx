"""What belongs to an actor, and ends with it."""


cdef class Held:
    """A thing in an actor's `Extra.held`."""

    cdef void let_go(self, object failure) noexcept:
        """The actor has ended, by `failure` if that is not None. Runs in its last dispatch."""
        pass

    cdef void claim(self, object task) noexcept:
        """The ref of a new task that has this among its arguments."""
        pass
