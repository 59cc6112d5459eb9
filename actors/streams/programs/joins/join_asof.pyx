"""The as-of join: each row of one stream meets the row of another stream that is nearest in time.

Rows are taken in the order of a merge in which the other stream is the first. So of one time its rows are taken
before those that look for them. Rows that wait for a later partner are put out in their order: the first of them holds
up the others.
"""

import cython

from collections import deque

from libc.math cimport INFINITY

from callboard.core.asserting cimport holds
from callboard.streams.programs.joins.join cimport JoinRows
from callboard.streams.programs.joins.kept cimport Kept, KeptRows
from callboard.streams.programs.merging.merge cimport IdleSources
from callboard.streams.programs.merging.time_order cimport InTime
from callboard.streams.programs.program cimport Program
from callboard.streams.programs.unawaited cimport refuse_unawaited


@cython.final
cdef class Looking:
    """A row of the left stream, and its partner, as far as it is known."""

    cdef Kept kept
    cdef Kept partner
    cdef bint is_settled


@cython.final
cdef class JoinAsof(JoinRows):
    """For each row of the left stream a pair with the row of the right one that is nearest, and has its key.

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
    cdef object recent       # a deque of the rows of the right stream that are near enough yet
    cdef dict waiting        # by key: a deque of rows that wait for a later partner
    cdef object queue        # a deque of all rows that are not put out yet

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

    cpdef tuple held(self):
        rows, silent = InTime.held(self)
        if not rows and self.queue:  # for later partners
            return len(self.queue), [1]
        return rows, [1 - which for which in silent]

    cpdef list snapshot(self, object kept):
        cdef KeptRows all = kept
        cdef Looking each
        head, entries = JoinRows.snapshot(self, kept)
        queue = [
            [all.number(each.kept), None if each.partner is None else all.number(each.partner), each.is_settled]
            for each in self.queue
        ]
        rights = [all.numbers_of(rows) for rows in (self.latest.values(), self.firsts.values(), self.recent)]
        return [(*head, rights, self.time_of_firsts, queue), entries]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef KeptRows all = kept
        cdef Looking looking
        JoinRows.restore(self, head, columns, kept, divided)
        latest, firsts, recent = [all.rows_of(numbers) for numbers in head[8]]
        self.latest = {(<Kept?>each).key: each for each in latest}
        self.firsts = {(<Kept?>each).key: each for each in firsts}
        self.recent.extend(recent)
        self.time_of_firsts = head[9]
        for number, partner, is_settled in head[10]:
            looking = Looking.__new__(Looking)
            looking.kept, looking.partner = all.row(number), None if partner is None else all.row(partner)
            looking.is_settled = is_settled
            self.queue.append(looking)
            if not is_settled:
                self.waiting.setdefault(looking.kept.key, deque()).append(looking)

    cdef object held_back(self, object instant):
        """A row that is not put out yet is part of an output."""
        return min(instant, (<Looking>self.queue[0]).kept.time) if self.queue else instant

    cpdef close(self):
        self.latest = self.firsts = self.waiting = self.recent = self.queue = None  # they may keep the run alive

    # --- rows, in order -----------------------------------------------------------------------------

    cdef int take_lot(self, list rows, object lineage, list into) except -1:
        cdef Kept kept
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

    cdef int offer(self, Kept kept) except -1:
        """A row of the right stream comes."""
        cdef Looking looking
        if not self.looks_ahead:
            self.latest[kept.key] = kept
        else:
            for looking in self.waiting.pop(kept.key, ()):
                self.settle_with(looking, kept)
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

    cdef int look(self, Kept kept) except -1:
        """A row of the left stream comes."""
        cdef Looking looking = Looking.__new__(Looking)
        cdef Kept found = self.latest.get(kept.key) if self.looks_back else self.firsts.get(kept.key)
        looking.kept = kept
        if found is not None and (found.time == kept.time if not self.looks_back else self.is_near(found, kept)):
            looking.partner = found
        looking.is_settled = not self.looks_ahead or (found is not None and found.time == kept.time)
        if not looking.is_settled:
            waiting = self.waiting.get(kept.key)
            if waiting is None:
                waiting = self.waiting[kept.key] = deque()
            waiting.append(looking)
        self.queue.append(looking)
        return 0

    cdef bint is_near(self, Kept earlier, Kept later) except -1:
        return self.tolerance is None or later.time - earlier.time <= self.tolerance

    cdef int settle_with(self, Looking looking, Kept later) except -1:
        """The first row of the right stream has come that is later."""
        cdef Kept kept = looking.kept, before = looking.partner
        assert holds(not looking.is_settled and kept.time < later.time)
        looking.is_settled = True
        if self.is_near(kept, later) and (before is None or later.time - kept.time < kept.time - before.time):
            looking.partner = later
        return 0

    # --- time ---------------------------------------------------------------------------------------

    cdef int come_to(self, object time, object lineage, list into) except -1:
        """No row before `time` comes any more."""
        cdef Kept kept
        if time == INFINITY:
            return self.put_out(None, lineage, into)
        while self.recent and time - (<Kept>self.recent[0]).time > self.tolerance:
            kept = self.recent.popleft()
            if self.latest.get(kept.key) is kept:
                del self.latest[kept.key]
        return self.put_out(time, lineage, into)

    cdef int finish(self, object lineage, list into) except -1:
        InTime.finish(self, lineage, into)
        return self.put_out(None, lineage, into)

    cdef int put_out(self, object time, object lineage, list into) except -1:
        """Give the rows whose partners are known, in order; all of them if nothing comes any more: `time` is None."""
        cdef Looking looking
        while self.queue:
            looking = self.queue[0]
            if not looking.is_settled:
                if time is not None and not self.is_over(looking, time):
                    return 0
                self.settle_alone(looking)
            self.queue.popleft()
            self.give(looking, lineage, into)
        return 0

    cdef bint is_over(self, Looking looking, object time) except -1:
        """Whether no row that comes can be a better partner."""
        cdef Kept kept = looking.kept
        if looking.partner is not None and time - kept.time >= kept.time - looking.partner.time:
            return True
        return self.tolerance is not None and time - kept.time > self.tolerance

    cdef int settle_alone(self, Looking looking) except -1:
        looking.is_settled = True
        waiting = self.waiting[looking.kept.key]
        assert holds(waiting[0] is looking)  # those of its key before it have been put out
        waiting.popleft()
        if not waiting:
            del self.waiting[looking.kept.key]
        return 0

    cdef int give(self, Looking looking, object lineage, list into) except -1:
        cdef Kept kept = looking.kept
        other = None if looking.partner is None else looking.partner.row
        try:
            output = (kept.row, other)
            if self.combine is not None:
                output = self.combine(kept.row, other)
                refuse_unawaited(output)
        except Exception as error:
            return Program.failed_at(self, kept.serial, kept.row, error, self.left_of(lineage), into)
        return self.add([output], lineage, into)
