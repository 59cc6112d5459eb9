"""The state that the actors of one system share."""

cimport cython

from libc.stdint cimport uint64_t

from callboard.core.sealed cimport maker_key
from callboard.scheduling.handle cimport ClassTimes

from callboard.core.errors import ForkedSystem

# How many class names have times of their own. Programs that make classes as they run have more.
cdef Py_ssize_t MOST_CLASSES = 1000
cdef str OTHERS = "(others)"


cdef class Runtime:
    """The inside of one system: the team of workers, its actors by name, dead letters, timers.

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
        self.counted = config.counted
        self.tuned = config.tuned
        self.carrying = config.context == "sender"
        self.notes_channels = config.monitoring in ("channels", "workers")
        self.children = {}
        self.names = {}
        self.times = {}
        self.scans = ()

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

    @property
    def class_times(self):
        """A copy of the table of times: the name of a class -> its ClassTimes. Empty where monitoring is off."""
        return dict(self.times)

    cdef ClassTimes times_of(self, str name):
        """Return the times of the classes with this name, as `__qualname__`."""
        cdef ClassTimes found = self.times.get(name)
        if found is not None:
            return found
        if len(self.times) >= MOST_CLASSES:
            name = OTHERS
        with cython.critical_section(self):
            found = self.times.get(name)
            if found is None:
                found = self.times[name] = ClassTimes.__new__(ClassTimes, maker_key(), len(self.team.workers))
        return found

    cdef uint64_t next_number(self) noexcept:
        with cython.critical_section(self):
            self.last_number += 1
            return self.last_number
