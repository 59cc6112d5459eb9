"""Indexes of the partners of many rows at once, in columns.

Matches depend on the order of rows alone, as in `join_index.pyx`. There may be several indexes,
one for each lane, which together find what one would. By numbers each lane reads all rows and stores every n-th of
either stream. A function is called once for each row, so each lane has every n-th of these.
"""

import cython

from libc.stdint cimport int64_t, uint8_t

from callboard.core.asserting cimport holds
from callboard.streams.programs.joins.join_index cimport SEED, JoinIndex
from callboard.streams.programs.joins.kernel.rules cimport JoinLane, JoinRule, JoinSettings, JoinTerm, NumberType
from callboard.streams.programs.joins.comparisons cimport Comparison

import numpy as np

from callboard.streams.programs.joins.predicates import places_in

most_at_once = 512


@cython.final
cdef class Known:
    """The facts that are known of the streams, which are the same for all rows of a chunk."""

    cdef bint has_whole_times(self):
        return self.scale.name != "floats"


@cython.final
cdef class OrderedRows:
    """The rows that are ready at a time, and what is known of the streams then."""

    cdef Py_ssize_t count(self):
        return 0 if self.sides is None else len(self.sides)


@cython.final
cdef class Matches:
    """The rows of a chunk and the numbers of their partners, both in order."""


@cython.final
cdef class ColumnIndex(JoinIndex):
    """Finds partners by comparing columns of numbers. For `most`, `three_step` and `by_buckets` see JoinBatches."""

    def __init__(self, size_t lane, size_t lanes, *, most, bint three_step, bint by_buckets):
        self.lane, self.lanes = lane, lanes
        self.rule, self.most, self.by_buckets = rule_of(most, three_step), most, by_buckets

    def __dealloc__(self):
        del self.matcher

    cdef object find(self, object rows):
        cdef OrderedRows chunk = rows
        cdef Matches found = Matches.__new__(Matches)
        cdef Py_ssize_t begin, count = chunk.count()
        for begin in range(0, count, most_at_once):
            self.match(chunk, begin, min(most_at_once, count - begin), found)
        return found

    cdef object together(self, list lanes):
        cdef Matches first = lanes[0], other
        assert holds(len(lanes) == <Py_ssize_t>self.lanes)
        for other in lanes[1:]:
            with nogil:
                add_matches(first.found, other.found)
        return first

    cdef int match(self, OrderedRows chunk, Py_ssize_t begin, Py_ssize_t rows, Matches into) except -1:
        """Add the matches of some rows, which are the next ones."""
        cdef const uint8_t[::1] side = chunk.sides
        cdef const uint8_t[::1] time = chunk.times.view(np.uint8)
        cdef const uint8_t* alone
        cdef const void* values[8]
        if self.matcher == NULL:
            self.make(chunk.known)
        alone = values_from(chunk.known, chunk.columns, begin, values)
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
        """Make the matcher: the types of times and values are known."""
        cdef JoinLane lane
        for is_real, comparison in known.terms:
            if comparison is None:
                lane.predicate.add(JoinTerm.equal(NumberType.float64 if is_real else NumberType.int64))
            else:
                (<Comparison?>comparison).add_to(&lane.predicate, not is_real)
        lane.rule, lane.lanes, lane.lane, lane.seed = self.rule, self.lanes, self.lane, SEED
        lane.passed[0], lane.passed[1] = passed
        left, right = lengths_of(known, self.most)
        if known.has_whole_times():
            self.matcher = new ColumnMatcherOf[int64_t](JoinSettings[int64_t](lane, left, right), self.by_buckets)
        else:
            self.matcher = new ColumnMatcherOf[double](JoinSettings[double](lane, left, right), self.by_buckets)
        return 0


cdef const uint8_t* values_from(Known known, list columns, Py_ssize_t begin, const void** values) except? NULL:
    """Note the addresses of the terms' values, for the rows from `begin` on. Return the address of the flags of rows
    without a partner; NULL: all rows may have one."""
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
cdef class MaskIndex(JoinIndex):
    """Calls `masks`, a function for each stream, for every n-th row. It maps the place of a row in the chunk to the
    numbers of its partners, or to the exception of the function."""

    cdef tuple masks
    cdef Py_ssize_t lane, lanes
    cdef Py_ssize_t rows    # that came before

    def __init__(self, Py_ssize_t lane, Py_ssize_t lanes, *, tuple masks):
        self.lane, self.lanes, self.masks = lane, lanes, masks

    cdef object find(self, object rows):
        cdef OrderedRows chunk = rows
        cdef dict found = {}
        cdef Py_ssize_t at, side
        cdef const uint8_t[::1] sides = chunk.sides
        cdef const int64_t[::1] numbers = chunk.numbers, begins = chunk.begins, ends = chunk.ends
        for at in range((self.lane + self.lanes - self.rows % self.lanes) % self.lanes, len(sides), self.lanes):
            side = sides[at]
            if begins[at] == ends[at]:
                found[at] = np.empty(0, np.int64)
                continue
            self.compared += ends[at] - begins[at]
            assert holds(begins[at] < ends[at] and begins[at] >= chunk.firsts[1 - side])
            first = chunk.firsts[1 - side]
            others = chunk.shown[1 - side].slice(begins[at] - first, ends[at] - begins[at])
            try:
                row = chunk.asked[side].slice(numbers[at] - chunk.firsts[side], 1)
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
