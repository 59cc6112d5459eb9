"""Finders of the partners of many rows at once, in columns.

As `finder.pyx` has it for rows: what is found depends on the order of rows alone, and there may be
several finders, lanes, which together find what one would. By numbers each lane reads all rows and
stores every n-th of either stream. A function is called once for each row, so each lane has every
n-th of these.
"""

import os

import cython

from libc.stdint cimport int64_t, uint8_t, uint64_t

from callboard.core.asserting cimport holds
from callboard.streams.programs.joins.kernel.rules cimport (
    JoinLengths, JoinPredicate, JoinRule, JoinSettings, JoinTerm, NumberType,
)
from callboard.streams.programs.joins.comparisons cimport Comparison

import numpy as np

from callboard.streams.programs.joins.predicates import places_in

# Where buckets lie, which nobody is to choose.
cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")
most_at_once = 512


@cython.final
cdef class Known:
    """Knowledge of the streams, the same for all rows that are ready."""

    cdef bint has_whole_times(self):
        return self.scale.name != "floats"


@cython.final
cdef class OrderedRows:
    """Rows that are ready at a time, and what is known by then."""

    cdef Py_ssize_t count(self):
        return 0 if self.sides is None else len(self.sides)


@cython.final
cdef class Matches:
    """Rows of a lot, and the numbers of their partners, both in order."""


cdef class LotFinder:
    """The base."""

    cdef object find(self, OrderedRows lot):
        raise NotImplementedError

    cdef object together(self, list lanes):
        raise NotImplementedError


@cython.final
cdef class ColumnFinder(LotFinder):
    """Finds partners by numbers. For `most`, `three_step` and `by_buckets` see JoinBatches."""

    def __init__(self, size_t lane, size_t lanes, *, most, bint three_step, bint by_buckets):
        self.lane, self.lanes = lane, lanes
        self.rule, self.most, self.by_buckets = rule_of(most, three_step), most, by_buckets

    def __dealloc__(self):
        del self.matcher

    cdef object find(self, OrderedRows lot):
        cdef Matches found = Matches.__new__(Matches)
        cdef Py_ssize_t begin, rows = lot.count()
        for begin in range(0, rows, most_at_once):
            self.match(lot, begin, min(most_at_once, rows - begin), found)
        return found

    cdef object together(self, list lanes):
        cdef Matches first = lanes[0], other
        assert holds(len(lanes) == <Py_ssize_t>self.lanes)
        for other in lanes[1:]:
            with nogil:
                add_matches(first.found, other.found)
        return first

    cdef int match(self, OrderedRows lot, Py_ssize_t begin, Py_ssize_t rows, Matches into) except -1:
        """Add what some of the rows match, which are the next ones."""
        cdef const uint8_t[::1] side = lot.sides
        cdef const uint8_t[::1] time = lot.times.view(np.uint8)
        cdef const uint8_t* alone
        cdef const void* values[8]
        if self.matcher == NULL:
            self.make(lot.known)
        alone = values_from(lot.known, lot.columns, begin, values)
        with nogil:
            self.matcher.match(begin, rows, &side[begin], &time[8 * begin], values, alone, into.found)
        self.compared = self.matcher.compared()
        return 0

    cdef int load(self, Known known, uint8_t side, object times, list columns) except -1:
        cdef const uint8_t[::1] sides = np.full(most_at_once, side, np.uint8)
        cdef const uint8_t[::1] time = times.view(np.uint8)
        cdef const uint8_t* alone
        cdef const void* values[8]
        cdef Py_ssize_t begin
        for begin in range(0, len(times), most_at_once):
            alone = values_from(known, columns, begin, values)
            self.matcher.load(min(most_at_once, len(times) - begin), &sides[0], &time[8 * begin], values, alone)
        return 0

    cdef int make(self, Known known, tuple passed=(0, 0)) except -1:
        """Make the finder: the types of the times and the values are known."""
        cdef JoinPredicate predicate
        cdef JoinSettings[int64_t] whole
        cdef JoinSettings[double] real
        for is_real, comparison in known.terms:
            if comparison is None:
                predicate.add(JoinTerm.equal(NumberType.float64 if is_real else NumberType.int64))
            else:
                (<Comparison?>comparison).add_to(&predicate, not is_real)
        left, right = lengths_of(known, self.most)
        if known.has_whole_times():
            whole.predicate, whole.rule, whole.seed = predicate, self.rule, SEED
            whole.within = JoinLengths[int64_t](left, right)
            whole.lanes, whole.lane = self.lanes, self.lane
            whole.passed[0], whole.passed[1] = passed
            self.matcher = new ColumnMatcherOf[int64_t](whole, self.by_buckets)
        else:
            real.predicate, real.rule, real.seed = predicate, self.rule, SEED
            real.within = JoinLengths[double](left, right)
            real.lanes, real.lane = self.lanes, self.lane
            real.passed[0], real.passed[1] = passed
            self.matcher = new ColumnMatcherOf[double](real, self.by_buckets)
        return 0


cdef const uint8_t* values_from(Known known, list columns, Py_ssize_t begin, const void** values) except? NULL:
    """Note where the values of terms are, of the rows from `begin` on. Return where it is which rows have no partner;
    NULL: all may have one."""
    cdef const uint8_t[::1] column
    cdef Py_ssize_t i, count = len(known.terms)
    for i in range(count):
        column = columns[i].view(np.uint8)
        values[i] = &column[8 * begin]
    if len(columns) == count:
        return NULL
    column = columns[count].view(np.uint8)
    return &column[begin]


@cython.final
cdef class MaskFinder(LotFinder):
    """Asks `masks`, for each stream a function, about every n-th row: of each row, by its place in the lot, the
    numbers of its partners, or what the function raised."""

    def __init__(self, Py_ssize_t lane, Py_ssize_t lanes, *, tuple masks):
        self.lane, self.lanes, self.masks = lane, lanes, masks

    cdef object find(self, OrderedRows lot):
        cdef dict found = {}
        cdef Py_ssize_t at, side
        cdef const uint8_t[::1] sides = lot.sides
        cdef const int64_t[::1] numbers = lot.numbers, begins = lot.begins, ends = lot.ends
        for at in range((self.lane + self.lanes - self.rows % self.lanes) % self.lanes, len(sides), self.lanes):
            side = sides[at]
            if begins[at] == ends[at]:
                found[at] = np.empty(0, np.int64)
                continue
            self.compared += ends[at] - begins[at]
            assert holds(begins[at] < ends[at] and begins[at] >= lot.firsts[1 - side])
            first = lot.firsts[1 - side]
            others = lot.shown[1 - side].slice(begins[at] - first, ends[at] - begins[at])
            try:
                row = lot.asked[side].slice(numbers[at] - lot.firsts[side], 1)
                found[at] = places_of(self.masks[side], row, others) + begins[at]
            except Exception as error:
                found[at] = error
        self.rows += len(sides)
        return found

    cdef object together(self, list lanes):
        cdef dict found = {}
        for some in lanes:
            assert holds(found.keys().isdisjoint(some))  # each row is asked about once
            found.update(some)
        return found


cdef JoinRule rule_of(object most, bint three_step) noexcept:
    if most is not None:
        return JoinRule.last_rows
    return JoinRule.three_step if three_step else JoinRule.strict


cdef tuple lengths_of(Known known, object most):
    """By `most` rows; or else the length "within", or those of both directions, of a row of the left stream."""
    cdef dict lengths = known.lengths
    if most is not None:
        return most - 1, most - 1
    if "within" in lengths:
        return lengths["within"], lengths["within"]
    return lengths["within[1]"], lengths["within[0]"]


cdef object places_of(object mask, object row, object others):
    return places_in(mask(row.to_pylist()[0], others), len(others))
