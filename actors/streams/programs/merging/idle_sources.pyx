"""Programs that do not wait for inputs which have fallen silent."""

from callboard.streams.programs.merging.merge cimport Merge
from callboard.streams.programs.program cimport Batch


cdef class IdleSources(Merge):
    """The base. An input from which nothing has come for `idle_timeout` seconds of the run's clock is idle, and not
    waited for, until something comes again."""

    def __init__(self, str name, list drops, leaves, *, idle_timeout=None, **options):
        super().__init__(name, drops, leaves, **options)
        self.idle_timeout = idle_timeout
        self.looks_every = 0 if idle_timeout is None else idle_timeout / 4

    cpdef process_many(self, list batches, list into):
        cdef bint fell_silent = self.idle_timeout is not None and self.find_idle(batches)
        Merge.process_many(self, batches, into)
        if fell_silent and not (<Batch?>into[0]).final:
            end = (<Batch?>batches[0]).end
            self.hand_on(None if end is None else end >> self.drops[0], into)

    cdef bint find_idle(self, list batches) except -1:
        """Find out which inputs are idle. Return whether one has become so."""
        cdef bint fell_silent = False, was
        cdef Batch batch
        cdef Py_ssize_t which
        now = self.tally.now()
        if self.heard is None:
            self.heard = [now] * len(batches)
        for which, batch in enumerate(batches):
            if batch.rows:
                self.heard[which] = now
            was = self.idle[which]
            self.idle[which] = now - self.heard[which] >= self.idle_timeout
            fell_silent |= self.idle[which] and not was
            if self.leaves is not None and batch.end is None:  # nothing came at all, so no row has a lineage
                batch.lineages, batch.end = [], 0
        return fell_silent

    cpdef bint wants_heartbeats(self):
        return self.idle_timeout is not None and not all(self.idle)
