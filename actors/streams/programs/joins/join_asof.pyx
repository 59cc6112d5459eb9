"""The as-of join: it pairs each row of one stream with the row of another stream that is nearest in time.

Rows are taken in the order of a merge, with the other stream first. So at one time its rows are there before the rows
that look for a partner. Rows that wait for a later partner are sent on in their order: the first one delays the others.
"""

import cython

from collections import deque

from libc.math cimport INFINITY

from callboard.core.asserting cimport holds
from callboard.streams.programs.joins.join cimport JoinRows
from callboard.streams.programs.joins.window_rows cimport WindowRow, SavedRows
from callboard.streams.programs.merging.merge cimport IdleSources
from callboard.streams.programs.merging.time_order cimport InTime
from callboard.streams.programs.program cimport Program
from callboard.streams.programs.unawaited cimport refuse_unawaited


@cython.final
cdef class AsofRow:
    """A row of the left stream, and its best partner so far."""

    cdef WindowRow kept
    cdef WindowRow partner
    cdef bint is_settled


@cython.final
cdef class JoinAsof(JoinRows):
    """Pairs each row of the left stream with the nearest row of the right stream that has the same key.

    `nearest`  "before": the latest row that is not later; "after": the first that is not earlier; "either": the
               nearer of these, the earlier one if both are as near
    The rule's length is how far away a partner may be.
    """

    cdef object combine
    cdef bint looks_back, looks_ahead
    cdef object tolerance    # or None
    cdef dict latest         # by key: the latest row of the right stream
    cdef dict firsts         # by key: the first row of the right stream at the latest time
    cdef object time_of_firsts
    cdef object recent       # a deque of the rows of the right stream that are still near enough
    cdef dict waiting        # by key: a deque of rows that wait for a later partner
    cdef object queue        # a deque of all rows that are not sent on yet

    def __init__(self, str name, list drops, leaves, *, combine, str nearest, rule, keys, times_of, **options):
        keys = None if keys is None else keys[::-1]
        super().__init__(name, drops[::-1], leaves, rule=rule, keys=keys, near=[[], []], comparisons=[],
                         times_of=times_of[::-1], **options)
        self.combine, self.tolerance = combine, rule.within
        self.looks_back, self.looks_ahead = nearest != "after", nearest != "before"
        self.latest, self.firsts, self.waiting = {}, {}, {}
        self.recent, self.queue = deque(), deque()

    cpdef process_many(self, list batches, list into):
        IdleSources.process_many(self, batches[::-1], into)

    cpdef tuple waiting_rows(self):
        rows, silent = InTime.waiting_rows(self)
        if not rows and self.queue:  # for later partners
            return len(self.queue), [1]
        return rows, [1 - which for which in silent]

    cpdef list snapshot(self, object kept):
        cdef SavedRows all = kept
        cdef AsofRow each
        head, entries = JoinRows.snapshot(self, kept)
        queue = [
            [all.number(each.kept), None if each.partner is None else all.number(each.partner), each.is_settled]
            for each in self.queue
        ]
        rights = [all.numbers_of(rows) for rows in (self.latest.values(), self.firsts.values(), self.recent)]
        return [(*head, rights, self.time_of_firsts, queue), entries]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef SavedRows all = kept
        cdef AsofRow pending
        JoinRows.restore(self, head, columns, kept, divided)
        latest, firsts, recent = [all.rows_of(numbers) for numbers in head[8]]
        self.latest = {(<WindowRow?>each).key: each for each in latest}
        self.firsts = {(<WindowRow?>each).key: each for each in firsts}
        self.recent.extend(recent)
        self.time_of_firsts = head[9]
        for number, partner, is_settled in head[10]:
            pending = AsofRow.__new__(AsofRow)
            pending.kept, pending.partner = all.row(number), None if partner is None else all.row(partner)
            pending.is_settled = is_settled
            self.queue.append(pending)
            if not is_settled:
                self.waiting.setdefault(pending.kept.key, deque()).append(pending)

    cdef object held_back(self, object instant):
        """A row that is not sent on yet is part of an output."""
        return min(instant, (<AsofRow>self.queue[0]).kept.time) if self.queue else instant

    cpdef close(self):
        self.latest = self.firsts = self.waiting = self.recent = self.queue = None  # they may keep the run alive

    # --- rows, in order -----------------------------------------------------------------------------

    cdef int take_chunk(self, list rows, object lineage, list into) except -1:
        cdef WindowRow kept
        for kept in rows:
            self.come_to(kept.time, lineage, into)
            try:
                if kept.error is not None:
                    raise kept.error
                if kept.side == 0:
                    self.offer(kept)
                else:
                    self.look(kept)
            except Exception as error:
                self.failed_at(kept.serial, kept.row, error, self.left_of(lineage), into)
            self.put_out(kept.time, lineage, into)
        return 0

    cdef int offer(self, WindowRow kept) except -1:
        """Take a row of the right stream."""
        cdef AsofRow pending
        if not self.looks_ahead:
            self.latest[kept.key] = kept
        else:
            for pending in self.waiting.pop(kept.key, ()):
                self.settle_with(pending, kept)
            if self.looks_back:
                self.latest[kept.key] = kept
            else:
                if self.time_of_firsts != kept.time:
                    self.firsts.clear()
                    self.time_of_firsts = kept.time
                self.firsts.setdefault(kept.key, kept)
        if self.looks_back and self.tolerance is not None:
            self.recent.append(kept)
        return 0

    cdef int look(self, WindowRow kept) except -1:
        """Take a row of the left stream."""
        cdef AsofRow pending = AsofRow.__new__(AsofRow)
        cdef WindowRow found = self.latest.get(kept.key) if self.looks_back else self.firsts.get(kept.key)
        pending.kept = kept
        if found is not None and (found.time == kept.time if not self.looks_back else self.is_near(found, kept)):
            pending.partner = found
        pending.is_settled = not self.looks_ahead or (found is not None and found.time == kept.time)
        if not pending.is_settled:
            waiting = self.waiting.get(kept.key)
            if waiting is None:
                waiting = self.waiting[kept.key] = deque()
            waiting.append(pending)
        self.queue.append(pending)
        return 0

    cdef bint is_near(self, WindowRow earlier, WindowRow later) except -1:
        return self.tolerance is None or later.time - earlier.time <= self.tolerance

    cdef int settle_with(self, AsofRow pending, WindowRow later) except -1:
        """Settle a row: the first later row of the right stream has come."""
        cdef WindowRow kept = pending.kept, before = pending.partner
        assert holds(not pending.is_settled and kept.time < later.time)
        pending.is_settled = True
        if self.is_near(kept, later) and (before is None or later.time - kept.time < kept.time - before.time):
            pending.partner = later
        return 0

    # --- time ---------------------------------------------------------------------------------------

    cdef int come_to(self, object time, object lineage, list into) except -1:
        """No row before `time` comes any more."""
        cdef WindowRow kept
        if time == INFINITY:
            return self.put_out(None, lineage, into)
        while self.recent and time - (<WindowRow>self.recent[0]).time > self.tolerance:
            kept = self.recent.popleft()
            if self.latest.get(kept.key) is kept:
                del self.latest[kept.key]
        return self.put_out(time, lineage, into)

    cdef int finish(self, object lineage, list into) except -1:
        InTime.finish(self, lineage, into)
        return self.put_out(None, lineage, into)

    cdef int put_out(self, object time, object lineage, list into) except -1:
        """Send on the rows whose partners are known, in order; all of them if `time` is None."""
        cdef AsofRow pending
        while self.queue:
            pending = self.queue[0]
            if not pending.is_settled:
                if time is not None and not self.is_over(pending, time):
                    return 0
                self.settle_alone(pending)
            self.queue.popleft()
            self.give(pending, lineage, into)
        return 0

    cdef bint is_over(self, AsofRow pending, object time) except -1:
        """Whether no later row can be a better partner."""
        cdef WindowRow kept = pending.kept
        if pending.partner is not None and time - kept.time >= kept.time - pending.partner.time:
            return True
        return self.tolerance is not None and time - kept.time > self.tolerance

    cdef int settle_alone(self, AsofRow pending) except -1:
        pending.is_settled = True
        waiting = self.waiting[pending.kept.key]
        assert holds(waiting[0] is pending)  # those of its key before it have been emitted
        waiting.popleft()
        if not waiting:
            del self.waiting[pending.kept.key]
        return 0

    cdef int give(self, AsofRow pending, object lineage, list into) except -1:
        cdef WindowRow kept = pending.kept
        other = None if pending.partner is None else pending.partner.row
        try:
            output = (kept.row, other)
            if self.combine is not None:
                output = self.combine(kept.row, other)
                refuse_unawaited(output)
        except Exception as error:
            return Program.failed_at(self, kept.serial, kept.row, error, self.left_of(lineage), into)
        return self.add([output], lineage, into)
