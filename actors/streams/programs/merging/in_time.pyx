"""Programs that take the rows of their inputs in order of time.

Ready rows are handled at the end of each batch. Where branches meet again behind them, they are handled after each
row: then the rows that a row let go have its lineage.
"""

import cython

from libc.stdint cimport int64_t

from callboard.rows.instants cimport instant_of
from callboard.streams.programs.merging.idle_sources cimport IdleSources
from callboard.streams.programs.merging.merge cimport Merge
from callboard.streams.programs.merging.time_order cimport TimeOrder
from callboard.streams.programs.program cimport Batch, Watermark
from callboard.streams.programs.rows.tables cimport check_key
from callboard.streams.programs.unawaited cimport refuse_unawaited

from callboard.core.text import safe_repr
from callboard.streams.programs.saved import Columns


cdef class InTime(IdleSources):
    """The base. `delay_threshold` is how far a row may be behind the latest of its input; a row that is further
    behind is late, and so is one before its input's watermark."""

    def __init__(self, str name, list drops, leaves, times_of, delay_threshold=None, **options):
        super().__init__(name, drops, leaves, **options)
        self.times_of = tuple(times_of)
        self.order = TimeOrder(len(drops), delay_threshold)
        self.idle = self.order.idle

    cpdef tuple held(self):
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
            raise ValueError(f"the time of a row is one that can be compared, not {safe_repr(time)}")
        if isinstance(time, tuple):
            check_key("the time of a row", time)
        return 0

    cdef int settle(self, object lineage, list into) except -1:
        return self.release(False, lineage, into)

    cdef int finish(self, object lineage, list into) except -1:
        return self.release(True, lineage, into)

    cdef int release(self, bint final, object lineage, list into) except -1:
        """Handle what is ready. Times that have no order after all are an error of no row in particular."""
        try:
            return self.handle(self.order.remaining() if final else self.order.ready(), lineage, into)
        except Exception as error:
            self.end(error)

    cdef int take_late(self, tuple entry, object lineage, list into) except -1:
        """It is counted and dropped, or goes to the side output."""
        cdef Batch side
        cdef Py_ssize_t port = self.sides["late"]
        if port < 0:
            self.tally.late(self.name, entry[3])
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
