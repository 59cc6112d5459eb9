"""Programs with several inputs.

The batches of a round meet, one from each input. Rows are taken in the order in which a run row by row would bring
them. They are sorted by the row that they come from, before the branches parted, and for one such row by input.
That is by their lineages, or, if no row can reach two of the inputs in one round, simply input by input.
"""

from collections import deque

from libc.stdint cimport int64_t

from callboard.core.asserting cimport holds
from callboard.rows.instants cimport in_zone, zone_of
from callboard.streams.programs.program cimport Batch, Program, Watermark, watermark_at
from callboard.streams.programs.saved import Columns


cdef class Merge(Program):
    """The base of programs with several inputs. By itself it is a union by arrival: all rows of all inputs.

    `drops` says how many bits of the lineages of each input are below those in which all inputs compare.
    `leaves` says how many of the others are of no use after this program; None if all are.
    """

    def __init__(self, str name, list drops, leaves, **options):
        super().__init__(name, kind="stateful", **options)
        self.drops = drops
        self.leaves = leaves
        self.marks = [None] * len(drops)
        self.idle = [False] * len(drops)

    cpdef process_many(self, list batches, list into):
        cdef Batch batch, out = into[0]
        cdef int64_t serial
        end = (<Batch?>batches[0]).end
        if end is not None:
            end >>= self.drops[0]
        for batch in into:
            batch.lineages = None if self.leaves is None else []
            batch.end = None if self.leaves is None or end is None else end >> self.leaves
        if type(self) is Merge and self.hand_over(batches, out):
            return
        for lineage, which, at in self.ordered(batches):
            batch = batches[which]
            row = batch.rows[at]
            serial = batch.first + at
            try:
                if type(row) is Watermark:
                    self.mark(which, row, lineage, into)
                else:
                    self.take(which, row, serial, lineage, into)
            except Exception as error:
                if self.ends_with(error):
                    raise
                self.settle(lineage, into)
                self.failed_at(serial, row, error, self.left_of(lineage), into)
        self.settle(end, into)
        if out.final:
            self.finish(end, into)

    cdef bint hand_over(self, list batches, Batch out) except -1:
        """Pass on the rows of a union's round at once. False: several inputs have rows, or one row is a watermark."""
        cdef Batch batch, one = None
        cdef Py_ssize_t which, found = 0
        for which, batch in enumerate(batches):
            if batch.rows:
                if one is not None:
                    return False
                one, found = batch, which
        if one is None:
            return True
        for row in one.rows:
            if type(row) is Watermark:
                return False
        if self.leaves is not None:
            if one.lineages is None:
                return False
            drop = self.drops[found] + self.leaves
            out.lineages = [lineage >> drop for lineage in one.lineages]
        out.rows.extend(one.rows)
        return True

    cpdef list snapshot(self, object kept):
        marks = [None if mark is None else (<Watermark>mark).time for mark in self.marks]
        return [(marks, self.idle, self.reached)]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        marks, idle, self.reached = head[:3]
        self.marks = [None if time is None else watermark_at(time) for time in marks]
        self.idle[:] = idle

    cdef list ordered(self, list batches):
        """(lineage, input, position) of all rows of a round, in their order."""
        cdef list found = []
        cdef Batch batch
        cdef Py_ssize_t which, at
        for which, batch in enumerate(batches):
            if not batch.rows:
                continue
            drop = self.drops[which]
            if batch.lineages is None:
                found += [(None, which, at) for at in range(len(batch.rows))]
            else:
                found += [(lineage >> drop, which, at) for at, lineage in enumerate(batch.lineages)]
        if all([(<Batch>batch).lineages is not None for batch in batches]):
            found.sort()
        return found

    cdef tuple held_in(self, list queues, list come_to):
        """Return the result of waiting_rows(), for rows that wait in order of the progress of inputs."""
        cdef list awake = [which for which in range(len(come_to)) if not self.idle[which]]
        cdef list silent = [which for which in awake if come_to[which] is None]
        if not silent and awake:
            silent = [min(awake, key=come_to.__getitem__)]
        return sum(map(len, queues)), silent

    cdef int add(self, list outputs, object lineage, list into) except -1:
        cdef Batch out = into[0]
        out.rows.extend(outputs)
        assert holds((self.leaves is None) == (out.lineages is None))
        if self.leaves is not None:
            out.lineages.extend([self.left_of(lineage)] * len(outputs))
        return 0

    cdef object left_of(self, object lineage):
        """Return the part of a lineage that is left behind this program."""
        return None if self.leaves is None else lineage >> self.leaves

    cdef int take(self, Py_ssize_t which, object row, int64_t serial, object lineage, list into) except -1:
        return self.add([row], lineage, into)

    cdef int mark(self, Py_ssize_t which, Watermark mark, object lineage, list into) except -1:
        """Note the progress of time at an input."""
        cdef object last = self.marks[which]
        if last is None or mark.instant > (<Watermark>last).instant:
            self.marks[which] = mark
        return self.hand_on(lineage, into)

    cdef int hand_on(self, object lineage, list into) except -1:
        """Pass on the progress of time: on all outputs it is the earliest of that on all inputs."""
        cdef list marks = self.marks
        if True in self.idle:
            marks = [mark for mark, idle in zip(self.marks, self.idle) if not idle]
            if not marks:  # no input is waited for
                marks = [latest_of([mark for mark in self.marks if mark is not None])]
        earliest = earliest_of(marks)
        return 0 if earliest is None else self.reach(earliest, lineage, into)

    cdef int reach(self, Watermark mark, object lineage, list into) except -1:
        cdef Batch port
        earliest = self.held_back(mark.instant)
        if self.reached is not None and earliest <= self.reached:
            return 0
        assert holds(earliest <= mark.instant)
        self.reached = earliest
        if earliest is not mark.instant:
            mark = watermark_at(in_zone(earliest, zone_of(mark.time)))
        for port in into:
            port.rows.append(mark)
            if port.lineages is not None:
                port.lineages.append(self.left_of(lineage))
        return 0

    cdef object held_back(self, object instant):
        """Return the instant that later outputs are not before, if later inputs are not before `instant`."""
        return instant

    cdef int settle(self, object lineage, list into) except -1:
        return 0

    cdef int finish(self, object lineage, list into) except -1:
        return 0


cdef object earliest_of(list marks):
    """The first of the earliest marks; None: one is None."""
    found = None
    for mark in marks:
        if mark is None:
            return None
        if found is None or (<Watermark?>mark).instant < (<Watermark?>found).instant:
            found = mark
    return found


cdef object latest_of(list marks):
    """The first of the latest marks; None of none."""
    found = None
    for mark in marks:
        if found is None or (<Watermark?>mark).instant > (<Watermark?>found).instant:
            found = mark
    return found


cdef class Zip(Merge):
    """Tuples of the inputs' first rows, then of their second rows, and so on."""

    cdef list waiting

    def __init__(self, str name, list drops, leaves, **options):
        super().__init__(name, drops, leaves, **options)
        self.waiting = [deque() for _ in drops]

    cpdef tuple waiting_rows(self):
        return sum(map(len, self.waiting)), [which for which, queue in enumerate(self.waiting) if not queue]

    cpdef list snapshot(self, object kept):
        cdef list inputs = [], rows = []
        for which, queue in enumerate(self.waiting):
            inputs += [which] * len(queue)
            rows += queue
        return [*Merge.snapshot(self, kept), Columns([inputs, rows], (0,))]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        Merge.restore(self, head, columns, kept, divided)
        for inputs, rows in columns:
            for which, row in zip(inputs, rows, strict=True):
                self.waiting[which].append(row)

    cdef int take(self, Py_ssize_t which, object row, int64_t serial, object lineage, list into) except -1:
        self.waiting[which].append(row)
        if all(self.waiting):
            self.add([tuple([queue.popleft() for queue in self.waiting])], lineage, into)
            assert holds(not all(self.waiting))  # at most one tuple becomes complete
        return 0

    cdef int finish(self, object lineage, list into) except -1:
        for queue in self.waiting:
            for row in queue:
                self.row_counts._unpaired(self.name, row)
            queue.clear()
        return 0


cdef class IdleSources(Merge):
    """The base of programs that do not wait for silent inputs. An input without rows for `idle_timeout` seconds of the
    run's clock is idle, and not waited for, until something comes again."""

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
        now = self.row_counts._seconds()
        if self.heard is None:
            self.heard = [now] * len(batches)
        for which, batch in enumerate(batches):
            if batch.rows:
                self.heard[which] = now
            was = self.idle[which]
            self.idle[which] = now - self.heard[which] >= self.idle_timeout
            fell_silent |= self.idle[which] and not was
            if self.leaves is not None and batch.end is None:  # no input has come, so no row has a lineage
                batch.lineages, batch.end = [], 0
        return fell_silent

    cpdef bint wants_heartbeats(self):
        return self.idle_timeout is not None and not all(self.idle)
