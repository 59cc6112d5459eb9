"""A join of two streams of Arrow batches within a window.

This is the join of `join.pyx` on columns. An index finds the partners of many rows at once, without the interpreter,
and `kernel/column_join.hpp` turns them into pairs of rows of the two windows. Arrow gathers these.
"""

from libc.stdint cimport int64_t, uint8_t, uint64_t
from libc.string cimport memcpy
from libcpp.vector cimport vector

from callboard.core.asserting cimport holds
from callboard.streams.programs.columns.batches_in_time cimport BatchesInTime
from callboard.streams.programs.joins.kernel.rules cimport (
    JoinLengths, JoinPredicate, JoinRule, JoinTerm, NumberType, most_terms,
)
from callboard.streams.programs.joins.chunk_index cimport (
    ColumnIndex, Known, OrderedRows, Matches, lengths_of, most_at_once, places_of, rule_of,
)

import numpy as np

from callboard.streams.programs.columns.batch_order import in_one_order
from callboard.streams.programs.columns.batches import BatchWindow, beside, nulls_in, side_by_side
from callboard.streams.programs.columns.join_columns import Compared, ComparedColumns
from callboard.streams.programs.columns.layouts import handed_out, inside
from callboard.streams.programs.columns.saving import packed, unpacked

KINDS = ("inner", "left", "right", "outer", "semi", "anti")
MOST_TERMS = most_terms - 1  # the last one is about nulls
cdef Py_ssize_t PIECE = 8192  # values in one piece of a snapshot


def prefers_buckets(rows):
    """Whether buckets are faster than comparing everything, with that many rows in a window."""
    cdef JoinPredicate predicate
    predicate.add(JoinTerm.equal(NumberType.int64))
    return prefers_index(predicate, best_path(), rows)


cdef class JoinBatches(BatchesInTime):
    """Pairs of partners side by side, by `terms` or by the answers of `masks`.

    `most`         how many rows a window has, up to 2**53, or None where `lengths` has times: see lengths_of()
    `three_step`   as for Join; and `how`
    `terms`        what is compared: the columns of both streams, and the comparison, or None for equality
    `masks`        for each stream, a function of a row and of rows of the other stream; or None
    `by_buckets`   whether buckets are searched for partners, and not the whole window
    `suffix`       follows the names of columns of the right stream that the left one has too
    `schemas`      the columns of each stream, as if it began with a batch without rows; or None
    `finds`        whether it finds partners itself
    """

    def __init__(self, str name, list drops, leaves, *, most, bint three_step, terms, masks, str how,
                 bint by_buckets, str suffix, schemas=(None, None), bint finds=True, **options):
        super().__init__(name, drops, leaves, is_finite=most is None, **options)
        self.masks, self.suffix = masks, suffix
        self.compared = None
        if masks is None:
            self.compared = Compared([ComparedColumns(names, comparison) for names, comparison in terms])
        self.kind = <JoinKind><uint8_t>KINDS.index(how)
        self.is_left_alone = how in ("semi", "anti")
        self.lacking = (how in ("right", "outer"), how in ("left", "outer"))
        self.rule, self.most = rule_of(most, three_step), most
        if masks is None and finds:
            self.index = ColumnIndex(0, 1, most=most, three_step=three_step, by_buckets=by_buckets)
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

    cdef int handle(self, list ready, bint final, object lineage, list into) except -1:
        self.do(self.chunk_of(ready, final), None, lineage, into)
        if not final and self.masks is None:
            self.forget(self.windows[0].columns + self.windows[1].columns)
        return 0

    cdef int forget(self, list columns) except -1:
        """Forget the values that are neither in rows that wait nor in these columns."""
        self.compared.forget([rows.columns for rows in self.order.waiting()] + columns)
        return 0

    cdef OrderedRows chunk_of(self, list ready, bint final):
        """Return the rows that are ready, in one order, and what is known of the streams."""
        cdef OrderedRows chunk = OrderedRows.__new__(OrderedRows)
        chunk.known = self.known()
        chunk.is_final, chunk.bound = final, None if final else self.order.bound()
        chunk.batches = [None if rows is None else rows.batch for rows in ready]
        chunk.own_columns = [[] if rows is None else rows.columns for rows in ready]
        some = [rows for rows in ready if rows is not None]
        if some:
            order, sides = in_one_order(some)
            chunk.sides = sides + 1 if ready[0] is None else sides
            chunk.times = np.concatenate([rows.times for rows in some])[order]
            chunk.columns = [
                np.concatenate(parts)[order] for parts in zip(*[rows.columns for rows in some], strict=True)
            ]
        return chunk

    cdef Known known(self):
        cdef Known known = Known.__new__(Known)
        known.scale, known.lengths, known.layouts = self.times_of.scale, self.lengths, self.layouts.copy()
        known.schema = self.schema
        known.terms = None if self.compared is None else self.compared.native()
        return known

    cdef int do(self, OrderedRows chunk, object found, object lineage, list into) except -1:
        """Make outputs, and drop the rows that have left their windows. `found`: the matches of other programs."""
        cdef Py_ssize_t side
        if self.join == NULL:
            if chunk.sides is None:
                return 0
            self.make(chunk.known, self.kind)
        if self.schema is not None:
            self.complete()
        for side in range(2):
            if chunk.batches[side] is not None:
                self.windows[side].add(chunk.batches[side], chunk.own_columns[side])
        if chunk.sides is not None:
            if self.masks is None:
                self.match(chunk, found)
            else:
                self.ask(chunk, lineage, into)
        self.let_go(chunk)
        self.assemble()
        for side in range(2):
            self.windows[side].drop(self.join.begin(side))
        if chunk.is_final and self.halves:
            raise ValueError(lacking(self.halves))
        return 0

    cdef object oldest(self):
        cdef bytearray time = bytearray(8)
        cdef char* place = time
        times = [earliest for _, _, earliest in self.halves]
        if self.join != NULL and self.join.has_oldest(place):
            times.append(self.time_at(place))
        return min(times, default=None)

    # --- snapshots --------------------------------------------------------------------------------

    cdef tuple values(self):
        begins = None
        if self.join != NULL:
            assert holds(self.join.outputs().size() == 0)
            begins = self.join.begin(0), self.join.begin(1)
        ids = [] if self.compared is None else [term.ids.next for term in self.compared.terms]
        return (*BatchesInTime.values(self), begins, ids)

    cdef list chunks(self):
        cdef list found = BatchesInTime.chunks(self)
        cdef Py_ssize_t at, side, rows
        cdef uint8_t[::1] place, partner
        for side, half, earliest in self.halves:
            found.append(("half", side, half, earliest, (), ()))
        for at, term in enumerate(() if self.compared is None else self.compared.terms):
            values = list(term.ids.numbers)
            numbers = np.array(list(term.ids.numbers.values()), np.int64)
            for begin in range(0, len(values), PIECE):
                some = slice(begin, begin + PIECE)
                found.append(("ids", at, tuple(values[some]), 0, packed([numbers[some]]), ()))
        for side in range(2):
            window = self.windows[side]
            if self.join == NULL or window.begin == window.end:
                continue
            rows = window.end - window.begin
            times, partners = np.empty(rows, np.int64 if self.has_whole_times else np.float64), np.empty(rows, np.uint8)
            place, partner = times.view(np.uint8), partners
            self.join.save(side, &place[0], &partner[0])
            for batch, number, columns in zip(window.batches, window.begins, window.columns, strict=True):
                some = slice(number - window.begin, number - window.begin + len(batch))
                of_rows = packed([times[some], partners[some]])
                found.append(("window", side, batch, number, of_rows, packed(columns)))
        return found

    cdef int go_on(self, tuple head) except -1:
        cdef Py_ssize_t side
        BatchesInTime.go_on(self, head)
        begins, ids = head[4:6]
        known = [None if layout is None else layout.outside for layout in self.layouts]
        if None not in known and not self.is_left_alone:
            self.schema = side_by_side(*known, self.suffix, self.lacking)
        if self.compared is not None:
            for side, layout in enumerate(self.layouts):
                if layout is not None:  # so it is known what is compared
                    self.compared.read(side, nulls_in(layout.inside, 0), layout.outside)
            for term, number in zip(self.compared.terms, ids, strict=True):
                term.ids.numbers.clear()
                term.ids.next = number
        if begins is not None:
            self.make(self.known(), self.kind_alone())
            for side in range(2):
                self.join.begin_at(side, begins[side])
                self.windows[side].end = begins[side]
            if self.index is not None:
                self.index.make(self.known(), begins)
        return 0

    cdef JoinKind kind_alone(self) noexcept:
        return self.kind

    cdef int load(self, str what, Py_ssize_t which, object batch, object number, object times, tuple columns) except -1:
        cdef const uint8_t[::1] time, partner
        if what == "half":
            self.halves.append((which, batch, number))
        elif what == "ids":
            self.compared.terms[which].ids.numbers.update(zip(batch, unpacked(times)[0].tolist(), strict=True))
        elif what == "window":
            of_rows, partner = unpacked(times)
            time = of_rows.view(np.uint8)
            self.join.load(which, &time[0], &partner[0], len(of_rows))
            self.windows[which].add(batch, unpacked(columns))
            if self.index is not None:
                self.index.load(self.known(), which, of_rows, unpacked(columns))
        else:
            BatchesInTime.load(self, what, which, batch, number, times, columns)
        return 0

    # --- partners ---------------------------------------------------------------------------------

    cdef int make(self, Known known, JoinKind kind) except -1:
        """Make the join: the type of times is known."""
        left, right = lengths_of(known, self.most)
        self.has_whole_times = known.has_whole_times()
        if self.has_whole_times:
            self.join = new ColumnJoinOf[int64_t](kind, self.rule, JoinLengths[int64_t](left, right), self.most or 0)
        else:
            self.join = new ColumnJoinOf[double](kind, self.rule, JoinLengths[double](left, right), self.most or 0)
        return 0

    cdef int match(self, OrderedRows chunk, Matches found) except -1:
        """Make the outputs of rows whose partners are found by numbers."""
        cdef const uint8_t[::1] side = chunk.sides
        cdef const uint8_t[::1] time = chunk.times.view(np.uint8)
        cdef Py_ssize_t begin, rows
        cdef size_t at = 0
        cdef bint finds = found is None
        if finds:
            found = Matches.__new__(Matches)
        for begin in range(0, len(side), most_at_once):
            rows = min(most_at_once, len(side) - begin)
            if finds:
                found.found.clear()
                at = 0
                self.index.match(chunk, begin, rows, found)
            with nogil:
                at += self.join.take_many(begin, rows, &side[begin], &time[8 * begin], found.found.data() + at,
                                          found.found.size() - at)
            if self.join.outputs().size() >= <size_t>self.output.size:
                self.assemble()
        return 0

    cdef int ask(self, OrderedRows chunk, object lineage, list into) except -1:
        """Make the outputs of rows whose partners are found by the masks of functions."""
        cdef const uint8_t[::1] sides = chunk.sides
        cdef const uint8_t[::1] time = chunk.times.view(np.uint8)
        cdef const int64_t[::1] partners
        cdef Py_ssize_t at
        for at in range(len(sides)):
            self.join.arrive(&time[8 * at])
            try:
                partners = self.partners(chunk, at)
            except Exception as error:
                self.failed_row(chunk, at, error, lineage, into)
                continue
            self.join.take(sides[at], &time[8 * at], &partners[0] if partners.shape[0] else NULL, partners.shape[0])
            if self.join.outputs().size() >= <size_t>self.output.size:
                self.assemble()
        return 0

    cdef object partners(self, OrderedRows chunk, Py_ssize_t at):
        """Return the numbers of a row's partners in the other window."""
        cdef Py_ssize_t side = chunk.sides[at]
        cdef uint64_t begin = self.join.begin(1 - side), end = self.join.end(1 - side), number = self.join.end(side)
        if begin == end:
            return np.empty(0, np.int64)
        others = self.windows[1 - side].shown(begin, end, self.expected(1 - side))
        return places_of(self.masks[side], self.windows[side].part(number, number + 1), others) + begin

    cdef int failed_row(self, OrderedRows chunk, Py_ssize_t at, object error, object lineage, list into) except -1:
        """A function raised: go on as if the row had not come."""
        cdef Py_ssize_t side = chunk.sides[at]
        cdef uint64_t number = self.join.end(side)
        if self.ends_with(error):
            raise error
        row = self.windows[side].part(number, number + 1)
        self.windows[side].remove(number)
        self.assemble()
        self.put_out(False, lineage, into)
        row = next(handed_out(row, self.expected(side)))
        return self.failed_at(chunk.columns[0][at], row, error, self.left_of(lineage), into)

    # --- outputs ----------------------------------------------------------------------------------

    cdef int let_go(self, OrderedRows chunk) except -1:
        """Drop the rows that are too old for all later rows."""
        if chunk.is_final:
            self.join.let_all_go()
            return 0
        bound = chunk.bound
        if bound is None or self.rule != JoinRule.strict:
            return 0
        if self.has_whole_times and not -2**63 <= bound[0] < 2**63:
            if bound[0] > 0:  # no more rows will come
                self.join.let_all_go()
            return 0
        cdef const uint8_t[::1] time = np.array([bound[0]], chunk.known.scale.dtype).view(np.uint8)
        self.join.arrive(&time[0])
        return 0

    cdef int assemble(self) except -1:
        """Make batches of the outputs so far."""
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
        """The columns of both streams are known: add those that outputs lack."""
        for side, half, earliest in self.halves:
            other = nulls_in(self.layouts[1 - side].inside, len(half))
            self.output.add(beside([other, half] if side else [half, other], inside(self.schema)), earliest)
        self.halves.clear()
        return 0

    cdef object time_at(self, const char* place):
        """Return a time as a number."""
        return (<const int64_t*>place)[0] if self.has_whole_times else (<const double*>place)[0]


cdef str lacking(list halves):
    """Return the error text for a stream whose columns are unknown."""
    side = halves[0][0]
    rows = sum([len(half) for _, half, _ in halves])
    return (f"the columns of stream {2 - side} are unknown, because it had no batch, and {rows:,} rows of stream "
            f"{1 + side} have no partner: give schemas= to join_batches(), or send a batch without rows")


cdef object array_of(const vector[int64_t]& numbers):
    """A copy, of one number or more."""
    found = np.empty(numbers.size(), np.int64)
    cdef int64_t[::1] view = found
    memcpy(&view[0], numbers.data(), numbers.size() * sizeof(int64_t))
    return found
