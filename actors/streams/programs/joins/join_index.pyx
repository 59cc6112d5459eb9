"""Indexes of a row's join partners among the earlier rows in its window.

The partners depend only on the order in which rows were taken. So an index may be far ahead of the output. There
may also be several indexes, called lanes. Each is handed all rows and stores every n-th of either stream: together
they compare what one would, and nothing twice (Gulisano et al. 2015, section IV-B, where rows of both streams are
counted together).
"""

import os

import cython

from collections import deque

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.stdint cimport INT64_MAX, int64_t, uint8_t, uint32_t, uint64_t
from libcpp cimport bool
from libcpp.vector cimport vector

from callboard.core.asserting cimport holds
from callboard.streams.programs.joins.comparisons cimport Comparison
from callboard.streams.programs.joins.kernel.rules cimport (
    JoinLane, JoinMatch, JoinRule, JoinSettings, is_stored_by_lane, most_terms,
)
from callboard.streams.programs.joins.window_rows cimport SavedRows, WindowRow, WindowRule
from callboard.streams.programs.unawaited cimport is_true

cdef extern from "callboard/streams/programs/joins/kernel/number_join.hpp" namespace "callboard" nogil:
    cdef cppclass NumberJoin:
        NumberJoin(const JoinSettings[int64_t]& settings) except +
        NumberJoin(const JoinSettings[double]& settings) except +
        void add_row(uint8_t side, uint64_t number, bool is_alone) except +
        void add_time(int64_t time) except +
        void add_time(double time) except +
        void add_value(uint32_t term, int64_t value) except +
        void add_value(uint32_t term, double value) except +
        void add_zeros() except +
        void match(vector[JoinMatch]& matches) except +
        uint64_t compared()

SEED = int.from_bytes(os.urandom(8), "little")
# Differences of integers up to this are exact as floats, too.
cdef int64_t most_as_float = 2**52
# Differences of times up to this have 64 bits.
cdef int64_t most_as_time = 2**62


cdef bint is_whole(object value, int64_t* whole, int64_t most) except -1:
    cdef int overflow
    if not PyLong_CheckExact(value):
        return False
    whole[0] = PyLong_AsLongLongAndOverflow(value, &overflow)
    return overflow == 0 and -most <= whole[0] <= most


cdef bint is_number(object value, double* number) except -1:
    cdef int64_t whole
    if PyFloat_Check(value):
        number[0] = PyFloat_AS_DOUBLE(value)
        return True
    if is_whole(value, &whole, most_as_float):
        number[0] = <double>whole
        return True
    return False


cdef class JoinIndex:
    """The base of join indexes."""

    cdef object find(self, object chunk):
        raise NotImplementedError

    cdef JoinIndex successor(self):
        raise NotImplementedError

    cdef object together(self, list lanes):
        raise NotImplementedError


cdef class RowIndex(JoinIndex):
    """The base of indexes of rows: the rows of both windows that a lane stores."""

    def __init__(self, WindowRule rule, size_t lane, size_t lanes):
        self.rule = rule
        self.lane, self.lanes = lane, lanes
        self.windows = [deque(), deque()]

    cdef object find(self, object chunk):
        cdef list rows = chunk, found = []
        cdef WindowRow kept
        for kept in rows:
            try:
                self.expire(kept.time)
                partners = [] if kept.is_alone else self.partners(kept)
                self.keep(kept)
            except Exception as error:  # from its time, its key, or its type
                partners = [(None, error)]
                self.push_out(kept)
            found.append(partners)
        return found

    cdef list partners(self, WindowRow kept):
        raise NotImplementedError

    cdef int expire(self, object time) except -1:
        """Drop the rows that are too old for the next row."""
        if not self.rule.is_strict:
            return 0
        for window in self.windows:
            while window and self.rule.is_over(<WindowRow>window[0], time):
                self.left(window.popleft())
        return 0

    cdef bint is_mine(self, WindowRow kept):
        """Whether this lane stores a row."""
        return not kept.is_alone and is_stored_by_lane(kept.side, kept.place, self.lane, self.lanes)

    cdef int keep(self, WindowRow kept) except -1:
        """Drop the rows that a row pushes out, and store it if it is this lane's."""
        self.push_out(kept)
        if self.is_mine(kept):
            self.stored(kept)
            window = self.windows[kept.side]
            assert holds(not window or (<WindowRow>window[len(window) - 1]).place < kept.place)
            window.append(kept)
        return 0

    cdef RowIndex go_on(self, list rows):
        cdef WindowRow kept
        for kept in rows:
            self.stored(kept)
            self.windows[kept.side].append(kept)
        return self

    cdef object together(self, list lanes):
        """For each row, return the partners that all lanes have found, in their order."""
        cdef list found = [], partners, some
        for each in zip(*lanes):
            partners = []
            for some in each:
                partners += some
            if len(partners) > 1:
                partners.sort(key=number_of)
                # Together the lanes compare what one would, and nothing twice.
                assert holds(are_distinct(partners))
            found.append(partners)
        return found

    cdef int push_out(self, WindowRow kept) except -1:
        window = self.windows[kept.side]
        self.came[kept.side] = kept.place + 1
        if not self.rule.is_strict:
            while window and self.rule.is_pushed_out(<WindowRow>window[0], kept):
                self.left(window.popleft())
        return 0

    cdef int stored(self, WindowRow kept) except -1:
        return 0

    cdef int left(self, WindowRow kept) except -1:
        return 0


cdef tuple indexes_state(list indexes, SavedRows kept):
    cdef RowIndex index
    cdef list rows = []
    cdef uint64_t left = 0, right = 0
    for index in indexes:
        rows += [*index.windows[0], *index.windows[1]]
        left, right = max(left, index.came[0]), max(right, index.came[1])
    rows.sort(key=place_in_order)
    return kept.numbers_of(rows), left, right


cdef RowIndex restored_index(RowIndex index, tuple state, SavedRows kept):
    cdef WindowRow each
    cdef list rows
    numbers, index.came[0], index.came[1] = state
    rows = [each for each in kept.rows_of(numbers) if index.is_mine(each)]
    return index.go_on(rows)


cdef place_in_order(kept):
    return (<WindowRow?>kept).number


cdef bint are_distinct(list partners) except -1:
    """For an assertion: no row is found twice. Each lane may have an error of the row itself."""
    cdef list rows = [number for number in map(number_of, partners) if number >= 0]
    return len(set(rows)) == len(rows)


cdef number_of(each):
    kept = each[0] if type(each) is tuple else each
    return -1 if kept is None else (<WindowRow?>kept).number


@cython.final
cdef class PairIndex(RowIndex):
    """Compares each pair, or each pair with the same key, by `comparisons` and by `test`."""

    cdef list tables        # for each stream, rows by their keys; None without keys
    cdef list comparisons
    cdef object test
    cdef bint once          # one partner of a row of the left stream is as good as all

    def __init__(self, WindowRule rule, size_t lane, size_t lanes, *, bint by_key, comparisons, test, bint once):
        super().__init__(rule, lane, lanes)
        self.tables = [{}, {}] if by_key else None
        self.comparisons, self.test, self.once = comparisons, test, once

    cdef list partners(self, WindowRow kept):
        cdef list found = []
        cdef WindowRow other
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

    cdef bint compare(self, WindowRow kept, WindowRow other) except -1:
        cdef tuple left = kept.near, right = other.near
        cdef Py_ssize_t i
        if kept.side == 1:
            left, right = right, left
        for i in range(len(left)):
            if not (<Comparison>self.comparisons[i]).holds(left[i], right[i]):
                return False
        return True

    cdef int stored(self, WindowRow kept) except -1:
        cdef dict table
        if self.tables is not None:
            table = self.tables[kept.side]
            rows = table.get(kept.key)
            if rows is None:
                rows = table[kept.key] = deque()
            rows.append(kept)
        return 0

    cdef int left(self, WindowRow kept) except -1:
        cdef dict table
        if self.tables is None:
            return 0
        table = self.tables[kept.side]
        assert holds(not kept.gone)
        kept.gone = True
        try:
            rows = table[kept.key]
            while rows and (<WindowRow>rows[0]).gone:
                rows.popleft()
            if not rows:
                del table[kept.key]
        except Exception:  # a key that cannot be compared any more stays
            pass
        return 0


@cython.final
cdef class NumberIndex(RowIndex):
    """Finds partners by numbers, without looking at each pair and without the interpreter (`kernel/number_join.hpp`).

    It answers as Python would: integers are compared as integers of 64 bits, and numbers as floats where that changes
    nothing. Values that do not fit are refused, and pairs are compared in Python from then on.
    """

    cdef list comparisons
    cdef bint once
    cdef dict of_number         # the rows in windows
    cdef NumberJoin* join       # made by the first row that has values, which says of what types all are
    cdef bint whole_times
    cdef vector[bint] whole     # of each band, whether its values are integers
    cdef vector[JoinMatch] matches

    def __init__(self, WindowRule rule, size_t lane, size_t lanes, *, comparisons, bint once):
        super().__init__(rule, lane, lanes)
        self.comparisons, self.once = list(comparisons), once
        self.of_number = {}

    def __dealloc__(self):
        del self.join

    @staticmethod
    def can_find(within, comparisons):
        """Whether partners in such a window can be found by numbers. `within` is None for the latest rows."""
        lengths = within if type(within) is tuple else (within,)
        if not 0 < len(comparisons) <= most_terms:
            return False
        for length in lengths if within is not None else ():
            if not (type(length) in (int, float) and length < most_as_float):
                return False
        return all([comparison.is_native() for comparison in comparisons])

    cdef object find(self, object chunk):
        cdef list rows = chunk, found = [], partners
        cdef WindowRow kept, other
        cdef size_t seen = 0
        cdef uint32_t added = 0
        for kept in rows:
            if self.join == NULL and kept.is_alone:  # the join's windows are still empty
                found.append([])
            elif not self.add(kept):
                return None
        if self.join == NULL:
            return found
        with nogil:
            self.join.match(self.matches)
        self.compared = self.join.compared()
        for kept in rows[len(found):]:
            self.expire(kept.time)
            partners = []
            while seen < self.matches.size() and self.matches[seen].row == added:
                other = self.of_number[self.matches[seen].partner]
                seen += 1
                if not (other.failed or (self.once and kept.side == 1 and other.matched)):
                    partners.append(other)
            added += 1
            self.keep(kept)
            found.append(partners)
        assert holds(seen == self.matches.size() and len(found) == len(rows))  # each match is of one of the rows
        assert holds(len(self.of_number) == len(self.windows[0]) + len(self.windows[1]))
        return found

    cdef JoinIndex successor(self):
        cdef PairIndex index = PairIndex(self.rule, self.lane, self.lanes, by_key=False, comparisons=self.comparisons,
                                         test=None, once=self.once)
        index.windows = self.windows
        index.compared = self.compared
        index.came[0], index.came[1] = self.came[0], self.came[1]
        return index

    cdef RowIndex go_on(self, list rows):
        """Pass these rows to the join, and between them rows without a partner, since it counts rows."""
        cdef WindowRow kept, before
        cdef uint64_t came[2]
        cdef uint8_t side
        if not rows:
            return self
        before = rows[0]
        self.begin(before)
        came[before.side], came[1 - before.side] = before.place, before.number - before.place
        for kept in rows:
            self.skip(before, kept.side, kept.place - came[kept.side])
            if not self.add(kept):
                return (<RowIndex>self.successor()).go_on(rows)
            came[kept.side] = kept.place + 1
            before = kept
        for side in range(2):
            if self.came[side] > came[side]:
                self.skip(before, side, self.came[side] - came[side])
        self.join.match(self.matches)
        return RowIndex.go_on(self, rows)

    cdef int skip(self, WindowRow kept, uint8_t side, uint64_t rows) except -1:
        """Add rows without a partner, at the time of an earlier row."""
        cdef uint64_t _row
        for _row in range(rows):
            self.add_time(kept)
            self.join.add_zeros()
            self.join.add_row(side, 0, True)
        return 0

    cdef int stored(self, WindowRow kept) except -1:
        assert holds(kept.number not in self.of_number)
        self.of_number[kept.number] = kept
        return 0

    cdef int left(self, WindowRow kept) except -1:
        del self.of_number[kept.number]
        return 0

    cdef bint add(self, WindowRow kept) except -1:
        """Add a row to the batch. False: it does not fit, and the join cannot be used any more."""
        cdef int64_t whole = 0
        cdef double real = 0
        cdef uint32_t i
        if self.join == NULL:
            self.begin(kept)
        if not self.add_time(kept):
            return False
        if kept.is_alone:
            self.join.add_zeros()
        else:
            for i in range(self.whole.size()):
                if self.whole[i]:
                    if not is_whole(kept.near[i], &whole, INT64_MAX):
                        return False
                    self.join.add_value(i, whole)
                else:
                    if not is_number(kept.near[i], &real):
                        return False
                    self.join.add_value(i, real)
        self.join.add_row(kept.side, kept.number, kept.is_alone)
        return True

    cdef bint add_time(self, WindowRow kept) except -1:
        """Add the time of a row. False: it does not fit."""
        cdef int64_t whole = 0
        cdef double real = 0
        if self.rule.within is None:
            self.join.add_time(whole)
        elif self.whole_times:
            if not is_whole(kept.time, &whole, most_as_time):
                return False
            self.join.add_time(whole)
        else:
            if not is_number(kept.time, &real):
                return False
            self.join.add_time(real)
        return True

    cdef int begin(self, WindowRow kept) except -1:
        cdef JoinLane lane
        cdef WindowRule rule = self.rule
        for value, comparison in zip(kept.near, self.comparisons):
            self.whole.push_back(type(value) is int)
            (<Comparison?>comparison).add_to(&lane.predicate, type(value) is int)
        if rule.within is None:
            lane.rule = JoinRule.last_rows
        else:
            lane.rule = JoinRule.strict if rule.is_strict else JoinRule.three_step
        lane.lanes, lane.lane, lane.seed = self.lanes, self.lane, SEED
        lane.passed[kept.side], lane.passed[1 - kept.side] = kept.place, kept.number - kept.place
        lengths = rule.lengths or (rule.most - 1, rule.most - 1)
        self.whole_times = rule.lengths is None or (
            type(kept.time) is int and type(lengths[0]) is int and type(lengths[1]) is int)
        if self.whole_times:
            self.join = new NumberJoin(JoinSettings[int64_t](lane, lengths[0], lengths[1]))
        else:
            self.join = new NumberJoin(JoinSettings[double](lane, lengths[0], lengths[1]))
        return 0
