"""A join of Arrow batches whose lanes share the comparisons: three programs in a row.

As in `join_in_lanes.pyx` the first puts rows into their order and writes the work down as commands. The second finds
partners, each lane by itself; the third carries out the commands. So what comes out is what JoinBatches gives.

A function that answers masks is asked by lanes before anybody knows which rows have failed, and a row that failed
is as if it had not come. So the last program asks again where a lane saw such a row.
"""

import cython

from collections import deque

from libc.stdint cimport int64_t, uint8_t

from callboard.streams.programs.columns.batches_in_time cimport BatchesInTime
from callboard.streams.programs.joins.join_batches cimport JoinBatches, JoinKind
from callboard.streams.programs.joins.kept cimport KeptRows
from callboard.streams.programs.joins.join_in_lanes cimport (
    BEGIN, COME_TO, ENDED, FAILED, LATE, LOT, REACH, JoinCommand, JoinCommandKind, LanePrograms, command,
    ended_command, failed_command,
)
from callboard.streams.programs.joins.lot_finder cimport ColumnFinder, Known, OrderedRows, LotFinder
from callboard.streams.programs.merging.merge cimport IdleSources, Merge
from callboard.streams.programs.program cimport Batch, Program, Watermark

import numpy as np

from callboard.streams.errors import StreamError
from callboard.streams.programs.columns.saving import unpacked


class WindowProgress:
    """How many rows of each stream have left their window for good."""

    gone = (0, 0)


@cython.final
cdef class BatchJoinOrder(JoinBatches):
    """The order of rows, as commands."""

    def __init__(self, str name, list drops, leaves, **options):
        super().__init__(name, drops, leaves, finds=False, **options)
        self.releases_gil = True
        self.progress = WindowProgress()
        self.held = [deque(), deque()]

    cdef JoinKind kind_alone(self) noexcept:
        return JoinKind.inner  # it is given no partners, and says which rows are in windows

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        JoinBatches.restore(self, head, columns, kept, divided)
        (<KeptRows?>kept).ahead.append(self)

    cdef int take_over(self, list windows) except -1:
        """Know which rows are in the windows of the last program."""
        if self.masks is not None:
            return 0
        self.progress.gone = tuple([window.begin for window in windows])
        for side, window in enumerate(windows):
            self.came[side] = window.end
            for begin, batch, columns in zip(window.begins, window.batches, window.columns, strict=True):
                self.held[side].append((columns, begin + len(batch)))
        return 0

    cpdef process_many(self, list batches, list into):
        cdef Batch out = into[0]
        if self.leaves is not None:
            end = (<Batch?>batches[0]).end
            out.rows.append(command(BEGIN, None, 0 if end is None else end >> self.drops[0]))
        IdleSources.process_many(self, batches, into)
        out.lineages = out.end = None  # these are in the commands

    cdef int note(self, JoinCommand step, list into) except -1:
        (<Batch?>into[0]).rows.append(step)
        return 0

    cdef int handle(self, list ready, bint final, object lineage, list into) except -1:
        cdef OrderedRows lot = self.lot_of(ready, final)
        if self.masks is None:
            lot.progress = self.progress
            self.hold(ready, final)
        else:
            self.look(lot)
        return self.note(command(COME_TO if lot.sides is None else LOT, lot, lineage), into)

    cdef int put_out(self, bint final, object lineage, list into) except -1:
        return 0

    cdef int reach(self, Watermark mark, object lineage, list into) except -1:
        return self.note(command(REACH, mark, lineage), into)

    cdef int take_late(self, object late, object lineage, list into) except -1:
        return self.note(command(LATE, late, lineage), into)

    cdef int failed_at(self, int64_t serial, object row, object error, object lineage, list into) except -1:
        return self.note(failed_command(serial, row, error, lineage), into)

    cdef int release(self, bint final, object lineage, list into) except -1:
        try:
            return BatchesInTime.release(self, final, lineage, into)
        except StreamError as error:
            return self.note(ended_command(error.__cause__), into)

    cdef int hold(self, list ready, bint final) except -1:
        """Know which values may be compared yet, and forget others."""
        cdef Py_ssize_t side
        for side in range(2):
            held = self.held[side]
            if ready[side] is not None:
                self.came[side] += len(ready[side])
                held.append((ready[side].columns, self.came[side]))
            while held and held[0][1] <= self.progress.gone[side]:
                held.popleft()
        if final or not self.compared.has_many_ids:
            return 0
        return self.forget([columns for held in self.held for columns, _ in held])

    cdef int look(self, OrderedRows lot) except -1:
        """Note which rows each row is to be compared with."""
        cdef Py_ssize_t at, side, rows = lot.count()
        cdef const uint8_t[::1] sides
        cdef const uint8_t[::1] time
        cdef int64_t[::1] numbers, begins, ends
        if self.join == NULL:
            if rows == 0:
                return 0
            self.make(lot.known, self.kind_alone())
        for side in range(2):
            if lot.batches[side] is not None:
                self.windows[side].add(lot.batches[side], [])
        if rows != 0:
            sides, time = lot.sides, lot.times.view(np.uint8)
            lot.numbers, lot.begins, lot.ends = [np.empty(rows, np.int64) for _ in range(3)]
            numbers, begins, ends = lot.numbers, lot.begins, lot.ends
            for at in range(rows):
                side = sides[at]
                self.join.arrive(&time[8 * at])
                numbers[at] = self.join.end(side)
                begins[at], ends[at] = self.join.begin(1 - side), self.join.end(1 - side)
                self.join.take(side, &time[8 * at], NULL, 0)
            lot.firsts, lot.asked, lot.shown = [], [], []
            for side, window in enumerate(self.windows):
                has_rows = window.begin < window.end
                lot.firsts.append(window.begin)
                lot.asked.append(window.part(window.begin, window.end) if has_rows else None)
                lot.shown.append(window.shown(window.begin, window.end, self.expected(side)) if has_rows else None)
        self.let_go(lot)
        for side in range(2):
            self.windows[side].drop(self.join.begin(side))
        return 0


@cython.final
cdef class BatchJoinLanes(LanePrograms):
    """Finds partners. `finder` makes a LotFinder."""

    cpdef list snapshot(self, object kept):
        return [()]  # the rows that are compared are those in the windows of the last program

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        self.is_divided = divided
        (<KeptRows?>kept).ahead.append(self)

    cdef int take_over(self, Known known, list windows, list times) except -1:
        """Have the rows in these windows, which are of these times."""
        cdef ColumnFinder finder
        cdef Py_ssize_t lane, side, row
        for lane in range(self.partitions) if self.is_divided else [self.partitions]:
            if not isinstance(self.finders[lane], ColumnFinder):
                return 0  # a function is asked, and has no rows
            finder = self.finders[lane]
            finder.make(known, tuple([window.begin for window in windows]))
            for side, window in enumerate(windows):
                row = 0
                for batch, columns in zip(window.batches, window.columns, strict=True):
                    finder.load(known, side, times[side][row:row + len(batch)], columns)
                    row += len(batch)
        return 0

    cdef object found(self, size_t lane, object lot):
        return (<LotFinder?>self.finders[lane]).find(lot)

    cdef object together(self, list lanes):
        return (<LotFinder?>self.finders[0]).together(lanes)

    cdef object compared_by(self, object finder):
        return (<LotFinder?>finder).compared


@cython.final
cdef class BatchJoinEnd(JoinBatches):
    """Carries out the commands."""

    def __init__(self, str name, list drops, leaves, **options):
        super().__init__(name, drops, leaves, finds=False, **options)
        self.failed, self.gone = [[], []], [0, 0]

    cdef tuple values(self):
        return (*JoinBatches.values(self), [[int(number) for number in some] for some in self.failed], self.gone)

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef KeptRows all = kept
        self.times = [[], []]
        JoinBatches.restore(self, head, columns, kept, divided)
        self.failed, self.gone = head[9:11]
        for ahead in all.ahead:
            if isinstance(ahead, BatchJoinOrder):
                (<BatchJoinOrder>ahead).take_over(self.windows)
            elif self.join != NULL:
                times = [np.concatenate(some) if some else np.empty(0) for some in self.times]
                (<BatchJoinLanes?>ahead).take_over(self.known(), self.windows, times)
        all.ahead.clear()
        self.times = None

    cdef int load(self, str what, Py_ssize_t which, object batch, object number, object times, tuple columns) except -1:
        JoinBatches.load(self, what, which, batch, number, times, columns)
        if what == "window":
            self.times[which].append(unpacked(times)[0])
        return 0

    cpdef process_many(self, list batches, list into):
        cdef Batch port
        cdef JoinCommand step
        for port in into:
            port.lineages = None if self.leaves is None else []
        for step in (<Batch?>batches[0]).rows:
            try:
                self.carry_out(step, into)
            except Exception as error:
                self.end(error)

    cdef int carry_out(self, JoinCommand step, list into) except -1:
        cdef JoinCommandKind what = step.kind
        cdef Batch port
        cdef OrderedRows lot
        if what == LOT or what == COME_TO:
            lot = step.subject
            self.times_of.scale, self.layouts, self.schema = lot.known.scale, lot.known.layouts, lot.known.schema
            self.answers = None if self.masks is None else step.found
            self.do(lot, step.found, step.lineage, into)
            if lot.progress is not None and self.join != NULL:
                lot.progress.gone = (self.join.begin(0), self.join.begin(1))
            return self.put_out(lot.is_final, step.lineage, into)
        if what == REACH:
            return Merge.reach(self, step.subject, step.lineage, into)
        if what == LATE:
            return BatchesInTime.take_late(self, step.subject, step.lineage, into)
        if what == FAILED:
            return Program.failed_at(self, step.serial, step.subject, step.error, step.lineage, into)
        if what == ENDED:
            return self.end_with(StreamError(self.name), step.error)
        for port in into:
            port.end = step.lineage >> self.leaves
        return 0

    cdef object partners(self, OrderedRows lot, Py_ssize_t at):
        """As lanes have found them, if they saw the rows that are in the window."""
        cdef Py_ssize_t other = 1 - lot.sides[at]
        cdef int64_t begin = lot.begins[at]
        failed, answer = self.failed[other], self.answers[at]
        while failed and failed[0] < begin:
            self.gone[other] += 1
            del failed[0]
        if (failed and failed[0] < lot.ends[at]) or begin - self.gone[other] != self.join.begin(other):
            return JoinBatches.partners(self, lot, at)
        if isinstance(answer, Exception):
            raise answer
        return answer - self.gone[other]

    cdef int failed_row(self, OrderedRows lot, Py_ssize_t at, object error, object lineage, list into) except -1:
        self.failed[lot.sides[at]].append(lot.numbers[at])
        return JoinBatches.failed_row(self, lot, at, error, lineage, into)
