"""Programs with several inputs.

The batches of a round meet, one from each input. Rows are taken in the order in which a run row by
row would bring them: by the row, before the branches parted, that they come from, and for one such
row by input. That is by their origins, or, if no row can reach two of the inputs in one round,
simply input by input.
"""

from collections import deque
from heapq import heappop, heappush

from callboard.streams.programs.program cimport Batch, Program, Watermark

from callboard.streams.checks import check_value


cdef class Merge(Program):
    """The base; as it is, a union by arrival: all rows of all inputs.

    `drops` says how many bits of the origins of each input are below the level on which all inputs
    compare, and `leaves` how many of those that are left are of no use after this union; None if
    all are.
    """

    cdef list drops
    cdef object leaves
    cdef list times      # the latest watermark of each input
    cdef object reached  # the watermark handed on last

    def __init__(self, str name, list drops, leaves, **options):
        super().__init__(name, kind="stateful", **options)
        self.drops = drops
        self.leaves = leaves
        self.times = [None] * len(drops)

    cpdef process_many(self, list batches, list into):
        cdef Batch batch, out = into[0]
        cdef list order = self.ordered(batches)
        end = (<Batch?>batches[0]).end
        if end is not None:
            end >>= self.drops[0]
        for batch in into:
            batch.origins = None if self.leaves is None else []
            batch.end = None if self.leaves is None or end is None else end >> self.leaves
        for origin, which, at in order:
            batch = batches[which]
            row = batch.rows[at]
            try:
                if type(row) is Watermark:
                    outputs = self.mark(which, (<Watermark>row).time)
                else:
                    outputs = self.take(which, row)
                self.add(outputs, origin, into)
            except Exception as error:
                self.failed(batch, at, error, into)
                if self.failures >= 0 and self.leaves is not None:
                    batch = into[self.failures]
                    batch.origins[len(batch.rows) - 1] = origin >> self.leaves
        if out.final:
            self.add(self.rest(), end, into)

    cdef list ordered(self, list batches):
        """(origin, input, position) of all rows of a round, in their order."""
        cdef list found = []
        cdef Batch batch
        cdef Py_ssize_t which, at
        for which, batch in enumerate(batches):
            drop = self.drops[which]
            if batch.origins is None:
                found += [(None, which, at) for at in range(len(batch.rows))]
            else:
                found += [(origin >> drop, which, at) for at, origin in enumerate(batch.origins)]
        if self.compares(batches):
            found.sort()
        return found

    cdef bint compares(self, list batches):
        return all((<Batch>batch).origins is not None for batch in batches)

    cdef int add(self, list outputs, object origin, list into) except -1:
        cdef Batch out = into[0]
        out.rows.extend(outputs)
        if self.leaves is not None:
            out.origins.extend([origin >> self.leaves] * len(outputs))
        return 0

    cdef list mark(self, Py_ssize_t which, time):
        """Time has come to the earliest of what it has come to on all inputs."""
        if self.times[which] is None or time > self.times[which]:
            self.times[which] = time
        if None in self.times:
            return []
        earliest = min(self.times)
        if self.reached is not None and earliest <= self.reached:
            return []
        self.reached = earliest
        return [Watermark(earliest)]

    cdef list take(self, Py_ssize_t which, row):
        return [row]

    cdef list rest(self):
        return []


cdef class Zip(Merge):
    """Tuples of the inputs' first rows, then of their second rows, and so on."""

    cdef list waiting

    def __init__(self, str name, list drops, leaves, **options):
        super().__init__(name, drops, leaves, **options)
        self.waiting = [deque() for _ in drops]

    cdef list take(self, Py_ssize_t which, row):
        self.waiting[which].append(row)
        return [tuple([queue.popleft() for queue in self.waiting])] if all(self.waiting) else []

    cdef list rest(self):
        for queue in self.waiting:
            for row in queue:
                self.context.unpaired(self.name, row)
            queue.clear()
        return []


cdef class ByTime(Merge):
    """All rows of inputs that are each in order of time, in order of time; for one time, by input.

    A row waits until all inputs after its own have come to its time, and those before beyond it: they
    could bring another, which goes first. One that is behind its own input goes out with the rest.
    """

    cdef object time_of
    cdef list come_to  # the latest time of each input, by a row or a watermark
    cdef list waiting  # a heap of (time, input, number, row)
    cdef object count

    def __init__(self, str name, list drops, leaves, time_of, **options):
        super().__init__(name, drops, leaves, **options)
        self.time_of = time_of
        self.come_to = [None] * len(drops)
        self.waiting = []
        self.count = 0

    cdef list take(self, Py_ssize_t which, row):
        time = self.time_of(row)
        check_value("what union() goes by", time)
        self.advance(which, time)
        heappush(self.waiting, (time, which, self.count, row))
        self.count += 1
        return self.ready()

    cdef list mark(self, Py_ssize_t which, time):
        self.advance(which, time)
        return self.ready() + Merge.mark(self, which, time)

    cdef list rest(self):
        return [heappop(self.waiting)[3] for _ in range(len(self.waiting))]

    cdef int advance(self, Py_ssize_t which, time) except -1:
        if self.come_to[which] is None or time > self.come_to[which]:
            self.come_to[which] = time
        return 0

    cdef list ready(self):
        """Rows that no row to come can precede."""
        if None in self.come_to:
            return []
        bound = min([(time, which) for which, time in enumerate(self.come_to)])
        found = []
        while self.waiting and self.waiting[0][:2] <= bound:
            found.append(heappop(self.waiting)[3])
        return found
