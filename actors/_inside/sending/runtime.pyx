"""The state that the actors of one system share."""

cimport cython
from libc.stdint cimport uint64_t

from callboard.core.errors import ForkedSystem


cdef class Runtime:
    """One system's insides: the team of workers, its actors by name, dead letters, timers.

    ActorSystem is what users hold; workers and actors hold only this, so that a system that nobody
    refers to is collected, and stops.
    """

    def __init__(self, team, name, dead_letters, timers, config, quantum, manual):
        self.team = team
        self.name = name
        self.dead_letters = dead_letters
        self.timers = timers
        self.config = config
        self.quantum = quantum
        self.manual = manual
        self.children = {}
        self.names = {}

    @property
    def system(self):
        """The ActorSystem, or None if it was collected."""
        return self.system_ref() if self.system_ref is not None else None

    @property
    def top(self):
        """The top-level actors, in the order of their spawning."""
        return list(self.children)

    @property
    def named(self):
        """A copy of the table of names: (parent or None, name) -> ref."""
        return dict(self.names)

    def refuse_fork(self):
        """Raise ForkedSystem in a child process of the one that made the system."""
        if self.forked:
            raise ForkedSystem(
                f"the actor system {self.name!r} lives in the process that made it; "
                "make one in this process"
            )

    cdef int tell_change(self) except -1:
        """Call `on_change`, if there is one."""
        with cython.critical_section(self):  # another thread may replace it
            on_change = self.on_change
        if on_change is not None:
            on_change()
        return 0

    cdef str ending(self):
        """Return the reason of the end of an actor that stops now, in the words of failures.py."""
        if not self.closing:
            return "stopped"
        return "system stopped" if self.system_ref is not None else "system collected"

    cdef uint64_t next_number(self) noexcept:
        with cython.critical_section(self):
            self.last_number += 1
            return self.last_number
