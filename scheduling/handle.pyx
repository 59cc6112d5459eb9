"""Handles, the base class of refs: actors as the scheduler sees them. Also the times of a class of actors."""

cimport cython
from libc.stdint cimport uint32_t, uint64_t

from callboard.core.asserting cimport holds
from callboard.core.memory.node cimport acquire, relaxed, release
from callboard.core.monitoring.actor_times cimport BUCKETS, ActorTimes, TimeHistogram
from callboard.core.sealed cimport only_by_runtime
from callboard.scheduling.cell cimport Cell, dedicated_cell, own_times_cell
from callboard.scheduling.context cimport Context, current_context
from callboard.scheduling.worker_core cimport Worker

from callboard.core.handles import public_names
from callboard.core.monitoring.time_distribution import TimeDistribution


cdef class Handle:
    """An actor as the scheduler's policies see it: the base class of refs.

    On other threads than the actor's, measurements may be slightly old.
    """

    def __dir__(self):
        return public_names(self)

    def __cinit__(self):
        # Sealed, as in core/sealed.pyx, but by a mark of the thread instead of a key, which makes spawning quicker.
        cdef Context* context = current_context()
        if not context.makes_handle:
            only_by_runtime(None, self, "refs come from spawn()")
        context.makes_handle = False

    @property
    def _number(self):
        """The actor's number in its system, counted from 1 in the order of spawning."""
        return self.cell.number

    @property
    def priority(self):
        """The number given as `priority` at spawn, or 0."""
        return self.cell.weight

    @property
    def worker(self):
        """The actor's worker; None before its placement."""
        cdef Worker* affinity = self.cell.get_affinity(relaxed)
        return <object>affinity.owner if affinity != NULL else None

    @property
    def _is_dedicated(self):
        """Whether the actor has a dedicated worker, and cannot move."""
        return self.has_own_worker()

    cdef bint has_own_worker(self) noexcept:
        return self.cell.has(dedicated_cell)

    @property
    def _queue_length(self):
        """The number of waiting messages; None if they are not counted.

        A bounded mailbox counts them; monitoring and some policies make every mailbox count.
        """
        return self.cell.limits.count() if self.cell.limits != NULL else None

    @property
    def _queue_peak(self):
        """The largest number of waiting messages so far; None if they are not counted."""
        return self.cell.limits.get_peak(relaxed) if self.cell.limits != NULL else None

    @property
    def _dropped(self):
        """The number of messages that the actor's mailbox dropped or refused because it was full."""
        return self.cell.limits.get_dropped(relaxed) if self.cell.limits != NULL else 0

    @property
    def _messages(self):
        """The number of messages that the actor has handled."""
        return self.cell.get_messages()

    @property
    def _dispatches(self):
        """The number of the actor's dispatches, including a present one."""
        return self.cell.get_dispatches()

    @property
    def _busy_ns(self):
        """The measured time in the actor's dispatches, in nanoseconds."""
        return self.cell.get_busy_ns()

    @property
    def _created_ns(self):
        """When the actor was spawned, in monotonic ns; 0 if monitoring is off."""
        return self.cell.created

    def _own_times(self):
        """Return distributions as `ClassTimes.read()`, of this actor's times since the first call.

        None if monitoring is off. Any thread.
        """
        cdef ActorTimes* times
        with cython.critical_section(self):  # one thread makes them
            times = self.cell.get_times(acquire)
            if times == NULL:
                return None
            if not self.cell.has(own_times_cell):
                times = new ActorTimes(times.workers(), times)
                self.cell.set(own_times_cell)
                self.cell.set_times(times, release)
        return distributions_of(times)


cdef class ClassTimes:
    """The times of the actors of one class, including ended ones. It lives as long as its actors' cells.

    Workers record the times, and any thread reads their distributions.
    """

    def __cinit__(self, object key, uint32_t workers):
        only_by_runtime(key, self, "times of a class come from its system")
        self.times = new ActorTimes(workers)

    def __dealloc__(self):
        del self.times

    def read(self):
        """Return the distributions of processing times and of times in the mailbox. Any thread."""
        return distributions_of(self.times)


cdef tuple distributions_of(ActorTimes* times):
    """Return the distributions of processing times and of times in the mailbox."""
    cdef size_t bucket
    cdef uint64_t count
    cdef uint64_t handled_ns = times.handled_ns()
    cdef uint64_t waited_ns = times.waited_ns()
    cdef list handled = []
    cdef list waited = []
    for bucket in range(BUCKETS):
        count = times.handled(bucket)
        if count:
            handled.append((TimeHistogram.bound_of(bucket), count))
        count = times.waited(bucket)
        if count:
            waited.append((TimeHistogram.bound_of(bucket), count))
    return TimeDistribution(handled_ns, tuple(handled)), TimeDistribution(waited_ns, tuple(waited))


cdef Handle actor_here():
    """Return the actor whose code the calling thread runs, or None."""
    cdef Cell* current = current_context().current
    assert holds(current == NULL or current.owner != NULL)
    return <Handle>current.owner if current != NULL else None
