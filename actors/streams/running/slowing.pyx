"""Operators of a running graph that seem faster, because all others are slowed down: see virtual_speed_up.hpp."""

cimport cython
from libc.stdint cimport int64_t
from libcpp.vector cimport vector

from callboard.core.clock cimport monotonic_ns
from callboard.scheduling.flow.flow cimport Pool, SliceObserver
from callboard.scheduling.flow.stage cimport python_lanes
from callboard.streams.experiments.pausing cimport pause
from callboard.streams.experiments.virtual_speed_up cimport VirtualSpeedUp
from callboard.streams.running.flow cimport GraphFlow, StagePlace

from callboard.core.threads.interpreter import has_gil


@cython.final
cdef class Slowing:
    """Slows a flow down, from begin() to end(). One at a time for each flow."""

    cdef GraphFlow flow
    cdef VirtualSpeedUp* speed_up  # the flow's, in which lanes may be until the flow ends

    def __cinit__(self, GraphFlow flow not None):
        cdef Pool* pool
        cdef SliceObserver* noted = NULL
        flow.check(True)
        if flow.speed_up == NULL:
            flow.speed_up = new VirtualSpeedUp(flow.flow.stages().size(), pause, has_gil())
            for pool in flow.pools:
                noted = pool.observe(NULL)
            flow.speed_up.pass_on_to(noted)
        self.flow = flow
        self.speed_up = flow.speed_up

    def begin(self):
        """Watch the slices of work of all lanes, until end()."""
        cdef Pool* pool
        for pool in self.flow.pools:
            pool.observe(<SliceObserver*>self.speed_up)

    def end(self):
        """Stop watching, and slow nothing down."""
        cdef Pool* pool
        self.let_seem_faster([], 0.0)
        for pool in self.flow.pools:
            pool.observe(NULL)

    def let_seem_faster(self, numbers, double part):
        """From now on, let programs seem faster by this fraction: slow down all others. With 0.0, none seem faster."""
        cdef vector[double] weights
        cdef bint locked = False
        cdef StagePlace* place
        weights.resize(self.flow.flow.stages().size())
        for number in numbers:
            place = self.flow.place(number)
            weights[place.stage.position] += part * self.share_of(place)
            if place.divider != NULL:
                weights[place.divider.position] = part
            locked = locked or place.stage.runs_on == python_lanes
        with nogil:
            self.speed_up.set(weights, locked)

    cdef double share_of(self, StagePlace* place) except -1:
        """The share of its stage's time that a program used: all of it, or the share of the samples."""
        cdef double mine, all_of_them = 0
        cdef size_t i
        if not place.figures.are_there():
            return 1.0
        mine = place.figures.busy_ns()
        for i in range(self.flow.places.size()):
            if self.flow.places[i].stage == place.stage:
                all_of_them += self.flow.places[i].figures.busy_ns()
        return min(1.0, mine / all_of_them) if all_of_them > 0 else 0.0

    def admit_slowly(self, dict batches):
        """Admit a round as try_admit() does, and slow the sender down like other threads."""
        with nogil:
            self.speed_up.arrives()
        admitted = self.flow.try_admit(batches)
        cdef bint is_full = not self.flow.has_room
        with nogil:
            self.speed_up.leaves(is_full)
        return admitted

    def moment(self, int64_t rounds, double seconds):
        """Wait until so many `rounds` are done, for at most `seconds`.

        Return the number of rounds done, the time, and the delay inserted until then, which is to be subtracted from
        the time. Both are in nanoseconds. Return None if the wait was too short.
        """
        cdef int64_t nanoseconds = <int64_t>(seconds * 1e9)
        cdef int64_t done, now
        cdef double inserted
        cdef bint enough
        with nogil:  # taking the interpreter again may need up to 5 ms
            enough = self.flow.flow.wait_until_done(rounds, nanoseconds)
            done = self.flow.flow.done()
            now = monotonic_ns()
            inserted = self.speed_up.inserted()
        return (done, now, inserted) if enough else None
