"""Finders of a row's join partners among the earlier rows in its window.

The partners depend only on the order in which rows were taken. So a finder may be far ahead of the output. There
may also be several finders, called lanes. Each is handed all rows and stores every n-th of either stream: together
they compare what one would, and nothing twice (Gulisano et al. 2015, section IV-B, where rows of both streams are
counted together).
"""

import cython

from collections import deque

from callboard.core.asserting cimport holds
from callboard.streams.programs.joins.comparisons cimport Comparison
from callboard.streams.programs.joins.kept cimport Kept, KeptRows, WindowRule
from callboard.streams.programs.joins.kernel.rules cimport is_stored_by_lane
from callboard.streams.programs.unawaited cimport is_true


cdef class Finder:
    """The base: windows of rows."""

    def __init__(self, WindowRule rule, size_t lane, size_t lanes):
        self.rule = rule
        self.lane, self.lanes = lane, lanes
        self.windows = [deque(), deque()]

    cdef list find(self, list rows):
        cdef Kept kept
        cdef list found = []
        for kept in rows:
            try:
                self.expire(kept.time)
                partners = [] if kept.is_alone else self.partners(kept)
                self.keep(kept)
            except Exception as error:  # of its time, its key, or its kind
                partners = [(None, error)]
                self.push_out(kept)
            found.append(partners)
        return found

    cdef list partners(self, Kept kept):
        raise NotImplementedError

    cdef Finder successor(self):
        raise NotImplementedError

    cdef int expire(self, object time) except -1:
        """Let go what is too old for a row that comes."""
        if not self.rule.is_strict:
            return 0
        for window in self.windows:
            while window and self.rule.is_over(<Kept>window[0], time):
                self.left(window.popleft())
        return 0

    cdef bint is_mine(self, Kept kept):
        """Whether this lane is the one that stores a row."""
        return not kept.is_alone and is_stored_by_lane(kept.side, kept.place, self.lane, self.lanes)

    cdef int keep(self, Kept kept) except -1:
        """Let go what a row pushes out, and store it, if that is this lane's to do."""
        self.push_out(kept)
        if self.is_mine(kept):
            self.stored(kept)
            window = self.windows[kept.side]
            assert holds(not window or (<Kept>window[len(window) - 1]).place < kept.place)
            window.append(kept)
        return 0

    cdef Finder go_on(self, list rows):
        cdef Kept kept
        for kept in rows:
            self.stored(kept)
            self.windows[kept.side].append(kept)
        return self

    cdef int push_out(self, Kept kept) except -1:
        window = self.windows[kept.side]
        self.came[kept.side] = kept.place + 1
        if not self.rule.is_strict:
            while window and self.rule.is_pushed_out(<Kept>window[0], kept):
                self.left(window.popleft())
        return 0

    cdef int stored(self, Kept kept) except -1:
        return 0

    cdef int left(self, Kept kept) except -1:
        return 0


cdef tuple finders_state(list finders, KeptRows kept):
    cdef Finder finder
    cdef list rows = []
    cdef uint64_t left = 0, right = 0
    for finder in finders:
        rows += [*finder.windows[0], *finder.windows[1]]
        left, right = max(left, finder.came[0]), max(right, finder.came[1])
    rows.sort(key=place_in_order)
    return kept.numbers_of(rows), left, right


cdef Finder restored_finder(Finder finder, tuple state, KeptRows kept):
    cdef Kept each
    cdef list rows
    numbers, finder.came[0], finder.came[1] = state
    rows = [each for each in kept.rows_of(numbers) if finder.is_mine(each)]
    return finder.go_on(rows)


cdef place_in_order(kept):
    return (<Kept?>kept).number


@cython.final
cdef class PairFinder(Finder):
    """Compares each pair, or each that has a key in common: by `comparisons` and by `test`."""

    def __init__(self, WindowRule rule, size_t lane, size_t lanes, *, bint by_key, comparisons, test, bint once):
        super().__init__(rule, lane, lanes)
        self.tables = [{}, {}] if by_key else None
        self.comparisons, self.test, self.once = comparisons, test, once

    cdef list partners(self, Kept kept):
        cdef list found = []
        cdef Kept other
        candidates = self.windows[1 - kept.side]
        if self.tables is not None:
            candidates = (<dict>self.tables[1 - kept.side]).get(kept.key, ())
        for other in candidates:
            if other.gone or other.failed or (self.once and kept.side == 1 and other.matched):
                continue
            self.compared += 1
            try:
                if kept.near is not None and not self.compare(kept, other):
                    continue
                if self.test is not None:
                    answer = self.test(kept.row, other.row) if kept.side == 0 else self.test(other.row, kept.row)
                    if not is_true(answer):
                        continue
            except Exception as error:
                found.append((other, error))
                continue
            found.append(other)
            if self.once and kept.side == 0 and other.settled:
                break
        return found

    cdef bint compare(self, Kept kept, Kept other) except -1:
        cdef tuple left = kept.near, right = other.near
        cdef Py_ssize_t i
        if kept.side == 1:
            left, right = right, left
        for i in range(len(left)):
            if not (<Comparison>self.comparisons[i]).holds(left[i], right[i]):
                return False
        return True

    cdef int stored(self, Kept kept) except -1:
        cdef dict table
        if self.tables is not None:
            table = self.tables[kept.side]
            rows = table.get(kept.key)
            if rows is None:
                rows = table[kept.key] = deque()
            rows.append(kept)
        return 0

    cdef int left(self, Kept kept) except -1:
        cdef dict table
        if self.tables is None:
            return 0
        table = self.tables[kept.side]
        assert holds(not kept.gone)
        kept.gone = True
        try:
            rows = table[kept.key]
            while rows and (<Kept>rows[0]).gone:
                rows.popleft()
            if not rows:
                del table[kept.key]
        except Exception:  # of a key that cannot be compared any more: it stays
            pass
        return 0
