"""A finder of a row's partners, where numbers decide.

The times and the values that are compared are handed to `kernel/number_join.hpp`, which finds partners without
looking at each pair, and without the interpreter. It answers as Python would: integers are compared as integers of
64 bits, and numbers as floats where that changes nothing. Values that do not fit are refused, and pairs are
compared in Python from then on.
"""

import os

import cython

from cpython.float cimport PyFloat_AS_DOUBLE, PyFloat_Check
from cpython.long cimport PyLong_AsLongLongAndOverflow, PyLong_CheckExact
from libc.stdint cimport INT64_MAX, int64_t, uint32_t, uint64_t

from callboard.core.asserting cimport holds
from callboard.streams.programs.joins.comparisons cimport Comparison
from callboard.streams.programs.joins.finder cimport Finder, PairFinder
from callboard.streams.programs.joins.kept cimport Kept, WindowRule
from callboard.streams.programs.joins.kernel.rules cimport JoinLengths, JoinRule, JoinSettings, most_terms

# Where buckets lie, which nobody is to choose.
cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")
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


@cython.final
cdef class NumberFinder(Finder):
    """Compares numbers, as `comparisons` say natively."""

    def __init__(self, WindowRule rule, size_t lane, size_t lanes, *, comparisons, bint once):
        super().__init__(rule, lane, lanes)
        self.comparisons, self.once = list(comparisons), once
        self.of_number = {}

    def __dealloc__(self):
        del self.join

    @staticmethod
    def can_find(within, comparisons):
        """Whether partners in such a window can be a question of numbers; of the latest rows, `within` is None."""
        lengths = within if type(within) is tuple else (within,)
        if not 0 < len(comparisons) <= most_terms:
            return False
        for length in lengths if within is not None else ():
            if not (type(length) in (int, float) and length < most_as_float):
                return False
        return all([comparison.is_native() for comparison in comparisons])

    cdef list find(self, list rows):
        cdef Kept kept, other
        cdef list found = [], partners
        cdef size_t seen = 0
        cdef uint32_t added = 0
        for kept in rows:
            if self.join == NULL and kept.is_alone:  # its windows are empty as yet
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

    cdef Finder successor(self):
        cdef PairFinder finder = PairFinder(self.rule, self.lane, self.lanes, by_key=False,
                                            comparisons=self.comparisons, test=None, once=self.once)
        finder.windows = self.windows
        finder.compared = self.compared
        finder.came[0], finder.came[1] = self.came[0], self.came[1]
        return finder

    cdef Finder go_on(self, list rows):
        """Have the join go through these rows, and between them through such as have no partner: it counts rows."""
        cdef Kept kept, before
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
                return self.successor().go_on(rows)
            came[kept.side] = kept.place + 1
            before = kept
        for side in range(2):
            if self.came[side] > came[side]:
                self.skip(before, side, self.came[side] - came[side])
        self.join.match(self.matches)
        return Finder.go_on(self, rows)

    cdef int skip(self, Kept kept, uint8_t side, uint64_t rows) except -1:
        """Add rows without a partner, at the time of one that came before them."""
        cdef uint64_t i
        cdef uint32_t term
        for i in range(rows):
            if self.rule.within is None:
                self.join.add_time(<int64_t>0)
            elif self.whole_times:
                self.join.add_time(<int64_t>kept.time)
            else:
                self.join.add_time(<double>kept.time)
            for term in range(self.whole.size()):
                if self.whole[term]:
                    self.join.add_value(term, <int64_t>0)
                else:
                    self.join.add_value(term, <double>0)
            self.join.add_row(side, 0, True)
        return 0

    cdef int stored(self, Kept kept) except -1:
        assert holds(kept.number not in self.of_number)
        self.of_number[kept.number] = kept
        return 0

    cdef int left(self, Kept kept) except -1:
        del self.of_number[kept.number]
        return 0

    cdef bint add(self, Kept kept) except -1:
        """Add a row to the batch. False: it does not fit; the join is of no use any more."""
        cdef int64_t whole = 0
        cdef double real = 0
        cdef uint32_t i
        if self.join == NULL:
            self.begin(kept)
        if self.rule.within is None:
            self.join.add_time(<int64_t>0)
        elif self.whole_times:
            if not is_whole(kept.time, &whole, most_as_time):
                return False
            self.join.add_time(whole)
        else:
            if not is_number(kept.time, &real):
                return False
            self.join.add_time(real)
        for i in range(self.whole.size()):
            if kept.is_alone:
                if self.whole[i]:
                    self.join.add_value(i, <int64_t>0)
                else:
                    self.join.add_value(i, <double>0)
            elif self.whole[i]:
                if not is_whole(kept.near[i], &whole, INT64_MAX):
                    return False
                self.join.add_value(i, whole)
            else:
                if not is_number(kept.near[i], &real):
                    return False
                self.join.add_value(i, real)
        self.join.add_row(kept.side, kept.number, kept.is_alone)
        return True

    cdef int begin(self, Kept kept) except -1:
        cdef JoinSettings[int64_t] by_whole_time
        cdef JoinSettings[double] by_time
        cdef WindowRule rule = self.rule
        for value, comparison in zip(kept.near, self.comparisons):
            self.whole.push_back(type(value) is int)
            (<Comparison?>comparison).add_to(&by_time.predicate, type(value) is int)
        by_time.rule = JoinRule.strict if rule.is_strict else JoinRule.three_step
        by_time.lanes, by_time.lane, by_time.seed = self.lanes, self.lane, SEED
        by_time.passed[kept.side], by_time.passed[1 - kept.side] = kept.place, kept.number - kept.place
        lengths = rule.lengths or (rule.most - 1, rule.most - 1)
        self.whole_times = rule.lengths is None or (
            type(kept.time) is int and type(lengths[0]) is int and type(lengths[1]) is int)
        if not self.whole_times:
            by_time.within = JoinLengths[double](lengths[0], lengths[1])
            self.join = new NumberJoin(by_time)
            return 0
        by_whole_time.predicate, by_whole_time.seed = by_time.predicate, SEED
        by_whole_time.rule, by_whole_time.lanes, by_whole_time.lane = by_time.rule, self.lanes, self.lane
        by_whole_time.passed[0], by_whole_time.passed[1] = by_time.passed[0], by_time.passed[1]
        if rule.within is None:
            by_whole_time.rule = JoinRule.last_rows
        by_whole_time.within = JoinLengths[int64_t](lengths[0], lengths[1])
        self.join = new NumberJoin(by_whole_time)
        return 0
