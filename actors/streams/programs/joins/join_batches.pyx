"""A join of two streams of Arrow batches within a window.

What `join.pyx` does row by row, on columns: `kernel/column_join.hpp` finds the partners of many
rows at once, without the interpreter, and says which rows of the two windows are side by side.
Arrow gathers them.
"""

import os

import cython

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from callboard.streams.programs.columns.batches_in_time cimport BatchesInTime
from callboard.streams.programs.joins.kernel.rules cimport (
    JoinPredicate, JoinRule, JoinSettings, JoinTerm, NumberType, most_terms,
)

import numpy as np

from callboard.streams.programs.columns.batch_order import in_one_order
from callboard.streams.programs.columns.batches import BatchWindow, beside, nulls_in, side_by_side
from callboard.streams.programs.columns.join_columns import Compared, ComparedColumns
from callboard.streams.programs.columns.layouts import handed_out, inside
from callboard.streams.programs.joins.masks import places_in

# Where cells lie, which nobody is to choose.
cdef uint64_t SEED = int.from_bytes(os.urandom(8), "little")
# So many rows are matched at once, at most.
cdef Py_ssize_t LOT = 512
KINDS = ("inner", "left", "right", "outer", "semi", "anti")
MOST_TERMS = most_terms - 1  # the last one is about nulls


def prefers_cells(rows):
    """Whether cells are quicker than comparing everything, with so many rows in a window."""
    cdef JoinPredicate predicate
    predicate.add(JoinTerm.equal(NumberType.int64))
    return prefers_index(predicate, best_path(), rows)


@cython.final
cdef class JoinBatches(BatchesInTime):
    """Pairs of rows that are partners, side by side, by `terms` or by the answers of `masks`.

    `most`         how many rows a window has, or None where `lengths` has "within"
    `three_step`   as for Join; and `how`
    `terms`        what is compared: the columns of both streams, and the distance, or None for equality
    `masks`        for each stream, a function of a row and of rows of the other stream; or None
    `by_cells`     whether partners are looked for in cells; else all rows in the window are compared
    `suffix`       is behind the names of columns of the right stream that the left one has, too
    `schemas`      of each stream, its columns, as if it began with a batch without rows; or None
    """

    def __init__(self, str name, list drops, leaves, *, most, bint three_step, terms, masks, str how,
                 bint by_cells, str suffix, schemas=(None, None), **options):
        super().__init__(name, drops, leaves, is_finite=most is None, **options)
        self.masks, self.suffix, self.by_cells = masks, suffix, by_cells
        self.compared = None
        if masks is None:
            self.compared = Compared([ComparedColumns(names, distance) for names, distance in terms])
        self.kind = <JoinKind><uint8_t>KINDS.index(how)
        self.is_left_alone = how in ("semi", "anti")
        self.lacking = (how in ("right", "outer"), how in ("left", "outer"))
        self.rule = JoinRule.strict
        if most is not None:
            self.rule = JoinRule.last_rows
            self.most = min(most, 2**53)
        elif three_step:
            self.rule = JoinRule.three_step
        self.windows = [BatchWindow(), BatchWindow()]
        self.halves = []
        for which, schema in enumerate(schemas):
            if schema is not None:
                self.take(which, nulls_in(schema, 0), 0, None, None)

    def __dealloc__(self):
        del self.join

    cdef list columns_of(self, Py_ssize_t which, object batch, object schema, int64_t serial):
        pair = self.schema
        other = self.expected(1 - which)
        if pair is None and other is not None and not self.is_left_alone:
            both = [schema, other] if which == 0 else [other, schema]
            pair = side_by_side(*both, self.suffix, self.lacking)
        columns = [np.full(len(batch), serial)] if self.masks is not None else self.compared.read(which, batch, schema)
        self.schema = pair
        return columns

    cdef object columns_out(self, bint final):
        return self.expected(0) if self.is_left_alone else self.schema

    cdef int handle(self, list ready, bint final, object origin, list into) except -1:
        cdef Py_ssize_t side
        some = [rows for rows in ready if rows is not None]
        if self.join == NULL:
            if not some:
                return 0
            self.make()
        if self.schema is not None:
            self.complete()
        for side in range(2):
            if ready[side] is not None:
                self.windows[side].add(ready[side].batch, ready[side].columns)
        if some:
            order, sides = in_one_order(some)
            if ready[0] is None:
                sides += 1
            times = np.concatenate([rows.times for rows in some])[order]
            columns = [np.concatenate(parts)[order] for parts in zip(*[rows.columns for rows in some], strict=True)]
            if self.masks is None:
                self.match(sides, times, columns)
            else:
                self.ask(sides, times, columns[0], origin, into)
        self.let_go(final)
        self.assemble()
        for side in range(2):
            self.windows[side].drop(self.join.begin(side))
        if final and self.halves:
            raise ValueError(lacking(self.halves))
        if not final and self.masks is None:
            self.compared.forget([rows.columns for rows in self.order.waiting()] + self.windows[0].columns
                                 + self.windows[1].columns)
        return 0

    cdef object oldest(self):
        cdef bytearray time = bytearray(8)
        cdef char* place = time
        times = [earliest for _, _, earliest in self.halves]
        if self.join != NULL and self.join.has_oldest(place):
            times.append(self.time_at(place))
        return min(times, default=None)

    # --- partners ---------------------------------------------------------------------------------

    cdef int make(self) except -1:
        """What the times and the values are is known: make the join."""
        cdef JoinPredicate predicate
        cdef JoinSettings[int64_t] whole
        cdef JoinSettings[double] real
        if self.compared is not None:
            for is_real, distance in self.compared.native():
                if distance is None:
                    predicate.add(JoinTerm.equal(NumberType.float64 if is_real else NumberType.int64))
                elif is_real:
                    predicate.add(JoinTerm.band(NumberType.float64, distance))
                else:
                    predicate.add(JoinTerm.whole_band(NumberType.int64, distance))
        within = self.lengths.get("within", self.most - 1)
        self.whole_times = self.times_of.scale.name != "floats"
        if self.whole_times:
            whole.predicate, whole.rule, whole.within, whole.seed = predicate, self.rule, within, SEED
            self.join = new ColumnJoinOf[int64_t](self.kind, whole, self.most, self.by_cells)
        else:
            real.predicate, real.rule, real.within, real.seed = predicate, self.rule, within, SEED
            self.join = new ColumnJoinOf[double](self.kind, real, self.most, self.by_cells)
        return 0

    cdef int match(self, object sides, object times, list columns) except -1:
        """Find the partners of rows by numbers."""
        cdef const uint8_t[::1] side = sides
        cdef const uint8_t[::1] time = times.view(np.uint8)
        cdef const uint8_t[::1] alone = None
        cdef const uint8_t[::1] column
        cdef const void* values[8]
        cdef Py_ssize_t begin, rows, i
        cdef bint has_bands = self.compared.has_bands
        if has_bands:
            alone = columns.pop().view(np.uint8)
        for begin in range(0, len(sides), LOT):
            rows = min(LOT, len(sides) - begin)
            for i in range(len(columns)):
                column = columns[i].view(np.uint8)
                values[i] = &column[8 * begin]
            with nogil:
                self.join.join(rows, &side[begin], &time[8 * begin], values, &alone[begin] if has_bands else NULL)
            if self.join.outputs().size() >= <size_t>self.output.size:
                self.assemble()
        return 0

    cdef int ask(self, object sides, object times, object serials, object origin, list into) except -1:
        """Find the partners of rows by the masks that functions answer with."""
        cdef const uint8_t[::1] time = times.view(np.uint8)
        cdef const int64_t[::1] partners
        cdef const int64_t* first
        cdef Py_ssize_t at, side
        cdef uint64_t number
        for at in range(len(sides)):
            side = sides[at]
            self.join.arrive(&time[8 * at])
            number = self.join.end(side)
            row = self.windows[side].part(number, number + 1)
            try:
                partners = self.partners(side, row)
            except Exception as error:
                if self.ends_with(error):
                    raise
                self.windows[side].remove(number)
                self.assemble()
                self.put_out(False, origin, into)
                row = next(handed_out(row, self.expected(side)))
                self.failed_at(serials[at], row, error, self.left_of(origin), into)
                continue
            first = &partners[0] if partners.shape[0] else NULL
            self.join.take(side, &time[8 * at], first, partners.shape[0])
            if self.join.outputs().size() >= <size_t>self.output.size:
                self.assemble()
        return 0

    cdef object partners(self, Py_ssize_t side, object row):
        """The numbers of a row's partners, of those in the other window."""
        cdef uint64_t begin = self.join.begin(1 - side), end = self.join.end(1 - side)
        if begin == end:
            return np.empty(0, np.int64)
        others = self.windows[1 - side].shown(begin, end, self.expected(1 - side))
        return places_in(self.masks[side](row.to_pylist()[0], others), len(others)) + begin

    # --- outputs ----------------------------------------------------------------------------------

    cdef int let_go(self, bint final) except -1:
        """Let go what is too old for all that comes."""
        if final:
            self.join.let_all_go()
            return 0
        bound = self.order.bound()
        if bound is None or self.rule != JoinRule.strict:
            return 0
        if self.whole_times and not -2**63 <= bound[0] < 2**63:
            if bound[0] > 0:  # nothing comes any more
                self.join.let_all_go()
            return 0
        cdef const uint8_t[::1] time = np.array([bound[0]], self.times_of.scale.dtype).view(np.uint8)
        self.join.arrive(&time[0])
        return 0

    cdef int assemble(self) except -1:
        """Make batches of what has been found."""
        cdef bytearray time = bytearray(8)
        cdef char* place = time
        cdef Py_ssize_t side
        if self.join.outputs().size() == 0:
            return 0
        self.join.earliest(place)
        earliest = self.time_at(place)
        numbers = [array_of(self.join.outputs().of[side]) for side in range(2)]
        self.join.outputs().clear()
        if self.is_left_alone:
            self.output.add(self.windows[0].gather(numbers[0], self.layouts[0].inside), earliest)
            return 0
        halves = [None if layout is None else window.gather(some, layout.inside)
                  for window, some, layout in zip(self.windows, numbers, self.layouts, strict=True)]
        if self.schema is not None:
            self.output.add(beside(halves, inside(self.schema)), earliest)
        else:
            side = halves[0] is None
            self.halves.append((side, halves[side], earliest))
        return 0

    cdef int complete(self) except -1:
        """The columns of both streams are known: give outputs those that they lack."""
        for side, half, earliest in self.halves:
            other = nulls_in(self.layouts[1 - side].inside, len(half))
            self.output.add(beside([other, half] if side else [half, other], inside(self.schema)), earliest)
        self.halves.clear()
        return 0

    cdef object time_at(self, const char* place):
        """The number that a time is."""
        return (<const int64_t*>place)[0] if self.whole_times else (<const double*>place)[0]


cdef str lacking(list halves):
    """Say that the columns of a stream are not known."""
    side = halves[0][0]
    rows = sum([len(half) for _, half, _ in halves])
    return (f"the columns of stream {2 - side} are not known, because it brought no batch, and rows of stream "
            f"{1 + side} have no partner, {rows:,} of them: give schemas= to join_batches(), or send a batch without "
            "rows")


cdef object array_of(const vector[int64_t]& numbers):
    """A copy, of one number or more."""
    found = np.empty(numbers.size(), np.int64)
    cdef int64_t[::1] view = found
    memcpy(&view[0], numbers.data(), numbers.size() * sizeof(int64_t))
    return found
