"""The order of rows of several sources: by time, then by source, then as they came.

A row is ready once nothing that may still come can precede it: each source after its own has come to its time, and
each before it beyond. That is Definition 2 of Gulisano et al. 2015 (ScaleJoin, section III), `time < the least of
what all sources have come to`, with ties told apart, so that a row need not wait for the next time of all. Ready
rows are handed out in that order, so the whole of it is the same, however the sources' rows arrived among each
other.

A source may be set idle: then no row waits for it, and one that it brings after all is late if what
comes after it has been handed out.

Programs handle ready rows at the end of each batch. Where branches meet again behind them, they handle them after each
row: then the rows that a row let go have its lineage.
"""

import cython

from collections import deque
from heapq import heappop, heappush

from libc.stdint cimport int64_t

from callboard.core.asserting cimport holds
from callboard.rows.instants cimport instant_of
from callboard.streams.programs.merging.merge cimport IdleSources, Merge
from callboard.streams.programs.program cimport Batch, Watermark
from callboard.streams.programs.rows.tables cimport check_key
from callboard.streams.programs.unawaited cimport refuse_unawaited

from callboard.core.text import safe_repr
from callboard.streams.programs.saved import Columns


cdef bint are_in_order(list entries) except -1:
    """For an assertion: by time, then by source, then as they came."""
    return all([entries[i - 1][:3] <= entries[i][:3] for i in range(1, len(entries))])


@cython.final
cdef class TimeOrder:
    """Rows on their way into one order. An entry is (time, source, serial, row)."""

    def __init__(self, Py_ssize_t sources, delay_threshold=None):
        self.delay_threshold = delay_threshold
        self.come_to = [None] * sources
        self.latest = [None] * sources
        self.queues = [deque() for _ in range(sources)]
        self.behind = []
        self.idle = [False] * sources
        self.passed = None

    cdef bint is_late(self, Py_ssize_t source, object time) except -1:
        """Whether the source, or the rows handed out, are beyond a time. Raises what the comparison
        with others' times does."""
        come_to, latest = self.come_to[source], self.latest[source]
        if come_to is None or type(time) is not type(latest):
            for other in self.come_to:
                if other is not None:
                    time < other  # noqa: B015
        if self.passed is not None and (time, source) < self.passed:
            return True
        return come_to is not None and time < come_to

    cdef int add(self, Py_ssize_t source, object time, int64_t serial, object row) except -1:
        cdef tuple entry = (time, source, serial, row)
        latest = self.latest[source]
        if latest is not None and time < latest:
            heappush(self.behind, entry)
            return 0
        come_to = time if self.delay_threshold is None else time - self.delay_threshold
        if come_to > time:  # NumPy's unsigned numbers
            raise ValueError(
                f"{safe_repr(self.delay_threshold)} before the time {safe_repr(time)} is {safe_repr(come_to)}, "
                "which is after it"
            )
        self.advance(source, come_to)
        self.latest[source] = time
        queue = self.queues[source]
        assert holds(not queue or not time < queue[len(queue) - 1][0])  # in order of time
        queue.append(entry)
        return 0

    cdef int advance(self, Py_ssize_t source, object time) except -1:
        """Note that no row before `time` will come from a source."""
        come_to = self.come_to[source]
        if come_to is None or time > come_to:
            self.come_to[source] = time
        return 0

    cdef object bound(self):
        """(time, source) up to which all is ready; None: nothing is."""
        if True in self.idle:
            return self.bound_of_awake()
        if None in self.come_to:
            return None
        return min([(time, source) for source, time in enumerate(self.come_to)])

    cdef tuple bound_of_awake(self):
        """The same, if sources are idle; if all are, all rows are ready."""
        cdef list awake = [
            (time, source) for source, time in enumerate(self.come_to) if not self.idle[source]
        ]
        if not awake:
            come = [
                (time, source)
                for times in (self.come_to, self.latest)
                for source, time in enumerate(times) if time is not None
            ]
            self.passed = max(come, default=None)
        elif None not in [time for time, _ in awake]:
            least = min(awake)
            self.passed = least if self.passed is None else max(self.passed, least)
        else:
            return None
        return self.passed

    cdef list ready(self):
        """Take the rows that are ready, in order."""
        cdef list found = []
        cdef Py_ssize_t source, last, runs = 0, before
        cdef tuple entry
        bound = self.bound()
        if bound is None:
            return found
        time, last = bound
        for source, queue in enumerate(self.queues):
            before = len(found)
            while queue:
                entry = queue[0]
                if not (entry[0] < time or (source <= last and entry[0] == time)):
                    break
                found.append(queue.popleft())
            runs += len(found) > before
        while self.behind and self.behind[0][:2] <= bound:
            found.append(heappop(self.behind))
            runs = 2
        if runs > 1:
            found.sort()
        assert holds(are_in_order(found))  # those of one source came so
        return found

    cdef list remaining(self):
        """Take all rows, at the end of all sources, in order."""
        cdef list found = self.behind
        for queue in self.queues:
            found.extend(queue)
            queue.clear()
        self.behind = []
        found.sort()
        return found

    cdef tuple distances(self):
        return self.come_to, self.latest, self.passed

    cdef int go_on(self, tuple distances) except -1:
        self.come_to, self.latest, self.passed = distances
        return 0

    cdef list waiting(self):
        cdef list entries = [entry for queue in self.queues for entry in queue]
        cdef Py_ssize_t in_order = len(entries)
        entries += self.behind
        columns = [list(column) for column in zip(*entries)] or [[], [], [], []]
        return [*columns, [at >= in_order for at in range(len(entries))]]

    cdef int wait_for(self, list columns) except -1:
        cdef Py_ssize_t at
        times, sources, serials, rows, behind = columns
        for at in range(len(times)):
            if not 0 <= sources[at] < len(self.queues):
                raise ValueError(f"a row of stream {sources[at]} waits, but there are {len(self.queues)} streams")
            queue = self.behind if behind[at] else self.queues[sources[at]]
            queue.append((times[at], sources[at], serials[at], rows[at]))
        return 0


cdef class InTime(IdleSources):
    """The base of programs that take the rows of their inputs in order of time. `delay_threshold` is how far a row may
    be behind the latest of its input; a row that is further behind is late, and so is one before its input's
    watermark."""

    def __init__(self, str name, list drops, leaves, times_of, delay_threshold=None, **options):
        super().__init__(name, drops, leaves, **options)
        self.times_of = tuple(times_of)
        self.order = TimeOrder(len(drops), delay_threshold)
        self.idle = self.order.idle

    cpdef tuple waiting_rows(self):
        return self.held_in([*self.order.queues, self.order.behind], self.order.come_to)

    cpdef list snapshot(self, object kept):
        (head,) = Merge.snapshot(self, kept)
        return [(*head, *self.order.distances()), Columns(self.order.waiting(), (1, 2, 4))]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        Merge.restore(self, head, columns, kept, divided)
        self.order.go_on(head[3:6])
        for piece in columns:
            self.order.wait_for(piece)

    cdef int take(self, Py_ssize_t which, object row, int64_t serial, object lineage, list into) except -1:
        given = self.times_of[which](row)
        refuse_unawaited(given)
        time = instant_of(given)
        self.check(time, True)
        if self.order.is_late(which, time):
            return self.take_late((time, which, serial, row), lineage, into)
        self.order.add(which, time, serial, row)
        return 0 if self.leaves is None else self.settle(lineage, into)

    cdef int mark(self, Py_ssize_t which, Watermark mark, object lineage, list into) except -1:
        self.check(mark.instant, False)
        self.order.is_late(which, mark.instant)  # raises, if they cannot be compared
        self.order.advance(which, mark.instant)
        self.settle(lineage, into)
        return Merge.mark(self, which, mark, lineage, into)

    cdef int check(self, object time, bint is_row) except -1:
        if time is None or time != time:
            raise ValueError(f"expected a comparable time for a row, got {safe_repr(time)}")
        if isinstance(time, tuple):
            check_key("the time of a row", time)
        return 0

    cdef int settle(self, object lineage, list into) except -1:
        return self.release(False, lineage, into)

    cdef int finish(self, object lineage, list into) except -1:
        return self.release(True, lineage, into)

    cdef int release(self, bint final, object lineage, list into) except -1:
        """Handle the rows that are ready. Times without an order are an error of no row in particular."""
        try:
            return self.handle(self.order.remaining() if final else self.order.ready(), lineage, into)
        except Exception as error:
            self.end(error)

    cdef int take_late(self, tuple entry, object lineage, list into) except -1:
        """It is counted and dropped, or goes to the side output."""
        cdef Batch side
        cdef Py_ssize_t port = self.sides["late"]
        if port < 0:
            self.row_counts._late(self.name, entry[3])
            return 0
        side = into[port]
        side.rows.append(entry[3])
        if side.lineages is not None:
            side.lineages.append(self.left_of(lineage))
        return 0

    cdef int handle(self, list entries, object lineage, list into) except -1:
        raise NotImplementedError


@cython.final
cdef class MergeInTime(InTime):
    """All rows of all inputs. With `keeps_late`, a late row goes out as soon as nothing earlier waits."""

    cdef bint keeps_late

    def __init__(self, str name, list drops, leaves, times_of, *, bint keeps_late=False, **options):
        super().__init__(name, drops, leaves, times_of, **options)
        self.keeps_late = keeps_late

    cdef int take_late(self, tuple entry, object lineage, list into) except -1:
        if not self.keeps_late:
            return InTime.take_late(self, entry, lineage, into)
        self.settle(lineage, into)  # a row that is later still has no say about what was ready before
        time, which, serial, row = entry
        self.order.add(which, time, serial, row)
        return 0 if self.leaves is None else self.settle(lineage, into)

    cdef int handle(self, list entries, object lineage, list into) except -1:
        return self.add([entry[3] for entry in entries], lineage, into)
