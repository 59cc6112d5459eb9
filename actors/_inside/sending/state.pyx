"""An actor's state besides its ref and its object."""

from collections import deque


cdef class Recipe:
    """The recipe of an actor: its class, its arguments, its options."""

    def __reduce__(self):
        # A class that is pickled by value, as Spark's are, takes its attributes along: this one is
        # found anew where the class arrives.
        return type(None), ()


cdef class Extra:
    """State that only some actors need; most refs have none."""

    cdef int replay_first(self, list letters) except -1:
        """Have letters handled next, in their order, before all others."""
        if self.replay is None:
            self.replay = deque()
        self.replay.extendleft(reversed(letters))
        return 0

    cdef int replay_last(self, object letter) except -1:
        """Have a letter handled before the mailbox, behind those that are to be."""
        if self.replay is None:
            self.replay = deque()
        self.replay.append(letter)
        return 0
