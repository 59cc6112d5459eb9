"""A join of two streams within a window.

Gulisano et al. 2015 (ScaleJoin), section II: rows that are ready are taken in one order. Each is compared with the
window of the other stream, and then enters the window of its own. The outputs of a row depend on that order alone, so
they are the same in whatever way the rows of both streams arrived.
"""

from collections import deque

from libc.math cimport INFINITY

from callboard.core.asserting cimport holds
from callboard.streams.programs.joins.join_index cimport ROWS_AT_ONCE, indexes_state, restored_index
from callboard.streams.programs.joins.window_rows cimport WindowRow, SavedRows, RowReader, WindowRule
from callboard.streams.programs.merging.time_order cimport InTime
from callboard.streams.programs.unawaited cimport refuse_unawaited

from callboard.streams.programs.windows.bounds import check_time


cdef class JoinRows(InTime):
    """The base: reads rows of both streams, in their order, for a comparison.

    `keys`   for each stream, a function that returns the key that partners have in common; or None
    `near`   for each stream, functions that return the other values, which the `comparisons` compare
    """

    def __init__(self, str name, list drops, leaves, *, WindowRule rule, keys, near, comparisons, **options):
        super().__init__(name, drops, leaves, **options)
        self.rule = rule
        self.reader = RowReader(keys, near, comparisons)

    cpdef list snapshot(self, object kept):
        head, waiting = InTime.snapshot(self, kept)
        return [(*head, self.first, self.reader.distances()), waiting]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        InTime.restore(self, head, columns, kept, divided)
        self.first = head[6]
        self.reader.go_on(head[7])

    cdef int check(self, object time, bint is_row) except -1:
        InTime.check(self, time, is_row)
        lengths = self.rule.lengths
        if lengths is None or not is_row:
            return 0
        check_time(time)
        if self.first is None:
            for length in lengths:
                time - time <= length  # noqa: B015 - raises, if they cannot be compared
            self.first = time
        elif type(time) is not type(self.first):
            for other in (self.first, *self.order.latest):
                if other is not None:
                    time - other  # noqa: B018
        return 0

    cdef int handle(self, list entries, object lineage, list into) except -1:
        cdef Py_ssize_t begin
        for begin in range(0, len(entries), ROWS_AT_ONCE):
            self.take_chunk([self.reader.read(entry) for entry in entries[begin:begin + ROWS_AT_ONCE]], lineage, into)
        bound = self.order.bound()
        return 0 if bound is None else self.come_to(bound[0], lineage, into)

    cdef int take_chunk(self, list rows, object lineage, list into) except -1:
        raise NotImplementedError

    cdef int come_to(self, object time, object lineage, list into) except -1:
        raise NotImplementedError


cdef class Join(JoinRows):
    """Pairs of partners, and rows without a partner.

    `index`    makes the join index, from the number of its lane and that of all lanes; None: other programs find
               the partners
    `how`      "inner", "left", "right", "outer", "semi" or "anti"
    """

    def __init__(self, str name, list drops, leaves, *, combine, how, index=None, **options):
        super().__init__(name, drops, leaves, **options)
        self.index = None if index is None else index(0, 1)
        self.combine = combine
        self.once = how == "semi"
        self.pairs = how not in ("semi", "anti")
        self.gives_unmatched = [how in ("left", "outer", "anti"), how in ("right", "outer")]
        self.windows = [deque(), deque()]

    cpdef list snapshot(self, object kept):
        cdef SavedRows all = kept
        head, waiting = JoinRows.snapshot(self, kept)
        index = None if self.index is None else indexes_state([self.index], all)
        return [(*head, [all.numbers_of(window) for window in self.windows], index), waiting]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        cdef SavedRows all = kept
        JoinRows.restore(self, head, columns, kept, divided)
        self.windows = [deque(all.rows_of(numbers)) for numbers in head[8]]
        if self.index is not None:
            self.index = restored_index(self.index, head[9], all)

    cdef int take_chunk(self, list rows, object lineage, list into) except -1:
        cdef list found = self.index.find(rows)
        if found is None:
            self.index = self.index.successor()
            found = self.index.find(rows)
        return self.put_out(rows, found, lineage, into)

    cdef int come_to(self, object time, object lineage, list into) except -1:
        if time == INFINITY and self.rule.is_strict:
            return self.let_all_go(lineage, into)
        return self.expire(time, lineage, into)

    cdef object held_back(self, object instant):
        """A row that is still in a window may be part of an output."""
        cdef WindowRow kept = self.oldest()
        return instant if kept is None else min(instant, kept.time)

    cdef int finish(self, object lineage, list into) except -1:
        InTime.finish(self, lineage, into)
        return self.let_all_go(lineage, into)

    cpdef close(self):
        self.index = self.windows = None  # they may keep the run alive

    # --- a row and its partners -------------------------------------------------------------------

    cdef int put_out(self, list rows, list found, object lineage, list into) except -1:
        """Send the outputs of rows, in order, whose partners were all found."""
        cdef WindowRow kept, other
        cdef list partners
        assert holds(len(rows) == len(found))
        for kept, partners in zip(rows, found):
            try:
                self.expire(kept.time, lineage, into)
                if kept.error is not None:
                    raise kept.error
                partners = self.partners(kept, partners)
                outputs = self.outputs(kept, partners)
            except Exception as error:
                if self.ends_with(error):
                    raise
                kept.failed = True
                self.failed_at(kept.serial, kept.row, error, self.left_of(lineage), into)
            else:
                kept.settled = True
                self.add(outputs, lineage, into)
                for other in partners:
                    other.matched = kept.matched = True
            self.keep(kept, lineage, into)
        return 0

    cdef list partners(self, WindowRow kept, list found):
        """Return the found rows that count. Raises the first error among them."""
        cdef list partners = []
        cdef WindowRow other
        for each in found:
            error = None
            if type(each) is tuple:
                each, error = each
            if each is not None:
                other = each
                assert holds(other.side != kept.side and other.number < kept.number)
                if other.failed:
                    continue
                if not self.pairs and (partners if kept.side == 0 else other.matched):  # one is enough
                    continue
            if error is not None:
                raise error
            partners.append(each)
        return partners

    cdef list outputs(self, WindowRow kept, list partners):
        cdef WindowRow other
        if self.pairs:
            if kept.side == 0:
                return [self.combined(kept.row, other.row) for other in partners]
            return [self.combined(other.row, kept.row) for other in partners]
        if not self.once:
            return []
        if kept.side == 0:
            return [kept.row] if partners else []
        return [other.row for other in partners]

    cdef object combined(self, left, right):
        if self.combine is None:
            return left, right
        output = self.combine(left, right)
        refuse_unawaited(output)
        return output

    # --- windows ----------------------------------------------------------------------------------

    cdef int expire(self, object time, object lineage, list into) except -1:
        """No row before `time` will come: drop the rows that are too old for all later rows."""
        cdef WindowRow kept
        while self.rule.is_strict:
            kept = self.next_to_go()
            if kept is None:
                return 0
            if not self.rule.is_over(kept, time):
                window = self.windows[1 - kept.side]  # sums of floats are rounded
                if not window or not self.rule.is_over(<WindowRow>window[0], time):
                    return 0
                kept = window[0]
            self.let_go(kept, lineage, into)
        return 0

    cdef int keep(self, WindowRow latest, object lineage, list into) except -1:
        """Put a row into its window, and drop the rows that it pushes out."""
        window = self.windows[latest.side]
        assert holds(not window or (<WindowRow>window[len(window) - 1]).number < latest.number)  # in order
        if not latest.failed:
            window.append(latest)
        while window and self.rule.is_pushed_out(<WindowRow>window[0], latest):
            self.let_go(<WindowRow>window[0], lineage, into)
        return 0

    cdef WindowRow oldest(self):
        """Return the oldest row of both windows, in the order in which rows are taken."""
        left, right = self.windows
        if not left:
            return <WindowRow>right[0] if right else None
        if right and (<WindowRow>right[0]).number < (<WindowRow>left[0]).number:
            return <WindowRow>right[0]
        return <WindowRow>left[0]

    cdef WindowRow next_to_go(self):
        """Return the row of both windows that will leave first, at whatever time."""
        cdef WindowRow kept = self.oldest()
        if kept is not None and self.windows[1 - kept.side]:
            other = self.windows[1 - kept.side][0]
            if self.rule.is_first_over(<WindowRow>other, kept):
                return other
        return kept

    cdef int let_all_go(self, object lineage, list into) except -1:
        cdef WindowRow kept
        while True:
            kept = self.next_to_go()
            if kept is None:
                return 0
            self.let_go(kept, lineage, into)

    cdef int let_go(self, WindowRow kept, object lineage, list into) except -1:
        """Drop the oldest row of its window. If it had no partner it may be an output."""
        assert holds(self.windows[kept.side][0] is kept)
        self.windows[kept.side].popleft()
        if kept.matched or not self.gives_unmatched[kept.side]:
            return 0
        try:
            if not self.pairs:
                output = kept.row
            elif kept.side == 0:
                output = self.combined(kept.row, None)
            else:
                output = self.combined(None, kept.row)
        except Exception as error:
            return self.failed_at(kept.serial, kept.row, error, self.left_of(lineage), into)
        return self.add([output], lineage, into)
