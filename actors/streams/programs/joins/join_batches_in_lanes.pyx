"""A join of Arrow batches whose lanes share the comparisons: three programs in a row.

As in `join_in_lanes.pyx` the first puts rows into order and writes the work down as commands. In the second each lane
finds partners by itself, and the third carries out the commands. So the outputs are those of JoinBatches.

Lanes call a function that answers with masks before it is known which rows have failed, and a failed row is as if it
had not come. So the last program calls the function again where a lane saw such a row.
"""

import cython

from collections import deque

from libc.stdint cimport int64_t, uint8_t

from callboard.streams.programs.columns.batches_in_time cimport BatchesInTime
from callboard.streams.programs.joins.join_batches cimport JoinBatches, JoinKind
from callboard.streams.programs.joins.window_rows cimport SavedRows
from callboard.streams.programs.joins.join_in_lanes cimport (
    CHUNK, COME_TO, LATE, REACH, JoinCommand, LanePrograms, begin_outputs, carry_out_common, command, ended_command,
    failed_command, note, write_down,
)
from callboard.streams.programs.joins.chunk_index cimport ColumnIndex, Known, OrderedRows
from callboard.streams.programs.program cimport Batch, Watermark

import numpy as np

from callboard.streams.errors import StreamError
from callboard.streams.programs.columns.saving import unpacked


class WindowProgress:
    """The number of rows of each stream that have left their window for good."""

    gone = (0, 0)


@cython.final
cdef class BatchJoinOrder(JoinBatches):
    """The order of rows, as commands."""

    cdef object progress   # as the output reports it
    cdef list stored       # of each stream, the columns of rows that may be in a window, and how many came up to there
    cdef int64_t came[2]

    def __init__(self, str name, list drops, leaves, **options):
        super().__init__(name, drops, leaves, finds=False, **options)
        self.releases_gil = True
        self.progress = WindowProgress()
        self.stored = [deque(), deque()]

    cdef JoinKind kind_alone(self) noexcept:
        return JoinKind.inner  # it is given no partners, and says which rows are in windows

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        JoinBatches.restore(self, head, columns, kept, divided)
        (<SavedRows?>kept).ahead.append(self)

    cdef int take_over(self, list windows) except -1:
        """Note which rows are in the windows of the last program."""
        if self.masks is not None:
            return 0
        self.progress.gone = tuple([window.begin for window in windows])
        for side, window in enumerate(windows):
            self.came[side] = window.end
            for begin, batch, columns in zip(window.begins, window.batches, window.columns, strict=True):
                self.stored[side].append((columns, begin + len(batch)))
        return 0

    cpdef process_many(self, list batches, list into):
        write_down(self, batches, into)

    cdef int handle(self, list ready, bint final, object lineage, list into) except -1:
        cdef OrderedRows chunk = self.chunk_of(ready, final)
        if self.masks is None:
            chunk.progress = self.progress
            self.store(ready, final)
        else:
            self.look(chunk)
        return note(command(COME_TO if chunk.sides is None else CHUNK, chunk, lineage), into)

    cdef int put_out(self, bint final, object lineage, list into) except -1:
        return 0

    cdef int reach(self, Watermark mark, object lineage, list into) except -1:
        return note(command(REACH, mark, lineage), into)

    cdef int take_late(self, object late, object lineage, list into) except -1:
        return note(command(LATE, late, lineage), into)

    cdef int failed_at(self, int64_t serial, object row, object error, object lineage, list into) except -1:
        return note(failed_command(serial, row, error, lineage), into)

    cdef int release(self, bint final, object lineage, list into) except -1:
        try:
            return BatchesInTime.release(self, final, lineage, into)
        except StreamError as error:
            return note(ended_command(error.__cause__), into)

    cdef int store(self, list ready, bint final) except -1:
        """Note which values may still be compared, and forget the others."""
        cdef Py_ssize_t side
        for side in range(2):
            stored = self.stored[side]
            if ready[side] is not None:
                self.came[side] += len(ready[side])
                stored.append((ready[side].columns, self.came[side]))
            while stored and stored[0][1] <= self.progress.gone[side]:
                stored.popleft()
        if final or not self.compared.has_many_ids:
            return 0
        return self.forget([columns for stored in self.stored for columns, _ in stored])

    cdef int look(self, OrderedRows chunk) except -1:
        """Note which rows each row is compared with."""
        cdef Py_ssize_t at, side, rows = chunk.count()
        cdef const uint8_t[::1] sides
        cdef const uint8_t[::1] time
        cdef int64_t[::1] numbers, begins, ends
        if self.join == NULL:
            if rows == 0:
                return 0
            self.make(chunk.known, self.kind_alone())
        for side in range(2):
            if chunk.batches[side] is not None:
                self.windows[side].add(chunk.batches[side], [])
        if rows != 0:
            sides, time = chunk.sides, chunk.times.view(np.uint8)
            chunk.numbers, chunk.begins, chunk.ends = [np.empty(rows, np.int64) for _ in range(3)]
            numbers, begins, ends = chunk.numbers, chunk.begins, chunk.ends
            for at in range(rows):
                side = sides[at]
                self.join.arrive(&time[8 * at])
                numbers[at] = self.join.end(side)
                begins[at], ends[at] = self.join.begin(1 - side), self.join.end(1 - side)
                self.join.take(side, &time[8 * at], NULL, 0)
            chunk.firsts, chunk.asked, chunk.shown = [], [], []
            for side, window in enumerate(self.windows):
                has_rows = window.begin < window.end
                chunk.firsts.append(window.begin)
                chunk.asked.append(window.part(window.begin, window.end) if has_rows else None)
                chunk.shown.append(window.shown(window.begin, window.end, self.expected(side)) if has_rows else None)
        self.let_go(chunk)
        for side in range(2):
            self.windows[side].drop(self.join.begin(side))
        return 0


@cython.final
cdef class BatchJoinLanes(LanePrograms):
    """Finds partners. `index` makes a join index of columns."""

    cdef bint is_divided   # as its state was given back

    cpdef list snapshot(self, object kept):
        return [()]  # the rows that are compared are those in the windows of the last program

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        self.is_divided = divided
        (<SavedRows?>kept).ahead.append(self)

    cdef int take_over(self, Known known, list windows, list times) except -1:
        """Store the rows of these windows, which have these times."""
        cdef ColumnIndex index
        cdef Py_ssize_t lane, side, row
        for lane in range(self.partitions) if self.is_divided else [self.partitions]:
            if not isinstance(self.indexes[lane], ColumnIndex):
                return 0  # a function has no rows
            index = self.indexes[lane]
            index.make(known, tuple([window.begin for window in windows]))
            for side, window in enumerate(windows):
                row = 0
                for batch, columns in zip(window.batches, window.columns, strict=True):
                    index.load(known, side, times[side][row:row + len(batch)], columns)
                    row += len(batch)
        return 0


@cython.final
cdef class BatchJoinEnd(JoinBatches):
    """Carries out the commands."""

    cdef dict answers      # of a chunk's rows
    cdef list failed       # of each stream, the places of rows that failed and may have been seen by lanes
    cdef list gone         # how many failed before these
    cdef list times        # of each stream, those of its window: while its state is given back

    def __init__(self, str name, list drops, leaves, **options):
        super().__init__(name, drops, leaves, finds=False, **options)
        self.failed, self.gone = [[], []], [0, 0]

    cdef tuple values(self):
        return (*JoinBatches.values(self), [[int(number) for number in some] for some in self.failed], self.gone)

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef SavedRows all = kept
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
        cdef JoinCommand step
        begin_outputs(self, into)
        for step in (<Batch?>batches[0]).rows:
            try:
                self.carry_out(step, into)
            except Exception as error:
                self.end(error)

    cdef int carry_out(self, JoinCommand step, list into) except -1:
        cdef OrderedRows chunk
        if step.kind == CHUNK or step.kind == COME_TO:
            chunk = step.subject
            self.times_of.scale, self.layouts, self.schema = chunk.known.scale, chunk.known.layouts, chunk.known.schema
            self.answers = None if self.masks is None else step.found
            self.do(chunk, step.found, step.lineage, into)
            if chunk.progress is not None and self.join != NULL:
                chunk.progress.gone = (self.join.begin(0), self.join.begin(1))
            return self.put_out(chunk.is_final, step.lineage, into)
        if step.kind == LATE:
            return BatchesInTime.take_late(self, step.subject, step.lineage, into)
        return carry_out_common(self, step, into)

    cdef object partners(self, OrderedRows chunk, Py_ssize_t at):
        """Return the matches of lanes, if the lanes saw the rows in the window."""
        cdef Py_ssize_t other = 1 - chunk.sides[at]
        cdef int64_t begin = chunk.begins[at]
        failed, answer = self.failed[other], self.answers[at]
        while failed and failed[0] < begin:
            self.gone[other] += 1
            del failed[0]
        if (failed and failed[0] < chunk.ends[at]) or begin - self.gone[other] != self.join.begin(other):
            return JoinBatches.partners(self, chunk, at)
        if isinstance(answer, Exception):
            raise answer
        return answer - self.gone[other]

    cdef int failed_row(self, OrderedRows chunk, Py_ssize_t at, object error, object lineage, list into) except -1:
        self.failed[chunk.sides[at]].append(chunk.numbers[at])
        return JoinBatches.failed_row(self, chunk, at, error, lineage, into)
