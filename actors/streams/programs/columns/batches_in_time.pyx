"""Programs that take the rows of Arrow batches in order of time, and output batches.

Rows are what `in_time.pyx` has one by one: here their times are columns, and no row becomes an
object. Outputs are batches of one size, so that these, too, do not depend on how inputs arrive.
"""

import cython

from libc.stdint cimport int64_t

from callboard.streams.programs.merging.merge cimport IdleSources, Merge
from callboard.streams.programs.merging.time_order cimport TimeOrder
from callboard.streams.programs.program cimport Batch, Watermark

from callboard.core.text import safe_repr
from callboard.streams.programs.columns.batch_order import BatchOrder, Rows, in_one_order
from callboard.streams.programs.columns.batches import Rebatched, joined
from callboard.streams.programs.columns.join_columns import TimeColumns
from callboard.streams.programs.columns.layouts import handed_out, in_common, layout_of, taken_in
from callboard.streams.programs.columns.saving import layout_from, packed, saved_schema, schema_from, unpacked
from callboard.streams.programs.saved import Columns

cdef int64_t most_length = 2**63 - 1


cdef class BatchesInTime(IdleSources):
    """The base. `by` has the time column of each input, and `size` is the number of rows in an output batch.
    `lengths` are lengths of time: "delay_threshold" is how far a row may be behind the latest of its input."""

    def __init__(self, str name, list drops, leaves, *, tuple by, dict lengths, Py_ssize_t size,
                 bint is_finite=False, **options):
        super().__init__(name, drops, leaves, **options)
        self.times_of = TimeColumns(by, is_finite)
        self.order = BatchOrder(len(drops))
        self.early = TimeOrder(len(drops))
        self.idle = self.order.idle = self.early.idle
        self.given = self.lengths = lengths
        self.output = Rebatched(size)
        self.layouts = [None] * len(drops)

    cdef int take(self, Py_ssize_t which, object row, int64_t serial, object lineage, list into) except -1:
        layout = layout_of(which, row, self.layouts[which], self.expected(which))
        batch = taken_in(which, row, layout, is_first=self.layouts[which] is None)
        scale, times = self.times_of.read(which, batch, layout.outside)
        is_first = self.times_of.scale is None
        if is_first:
            points, lengths = self.points(scale), self.lengths_on(scale)
        columns = self.columns_of(which, batch, layout.outside, serial)
        self.layouts[which] = layout  # nothing raises from here on
        if is_first:
            self.begin(scale, points, lengths)
        if not len(batch):
            return 0
        late = self.order.are_late(which, times)
        rows = Rows(batch, times, columns)
        if late.any():
            for some in handed_out(batch.take(late.nonzero()[0]), layout.outside):
                self.take_late(some, lineage, into)
            rows = rows.at((~late).nonzero()[0])
        if len(rows):
            self.order.add(which, rows)
        return 0 if self.leaves is None else self.settle(lineage, into)

    cdef list points(self, object scale):
        """The watermarks of the inputs on a scale."""
        return [None if mark is None else scale.point((<Watermark?>mark).instant) for mark in self.marks]

    cdef dict lengths_on(self, object scale):
        return {what: length_of(what, scale, length) for what, length in self.given.items()}

    cpdef tuple waiting_rows(self):
        return self.held_in(self.order.waiting(), self.order.come_to)

    # --- snapshots --------------------------------------------------------------------------------

    cpdef list snapshot(self, object kept):
        (head,) = Merge.snapshot(self, kept)
        columns = [list(column) for column in zip(*self.chunks())] or [[]] * 6
        return [(*head, *self.values()), Columns(columns, (0, 1, 2, 3, 4, 5), piece=1)]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        Merge.restore(self, head, columns, kept, divided)
        self.go_on(head[3:])
        for piece in columns:
            for what, which, batch, number, times, values in zip(*piece, strict=True):
                self.load(what, which, batch, number, times, values)

    cdef tuple values(self):
        schemas = [None if layout is None else saved_schema(layout.outside) for layout in self.layouts]
        return (self.times_of.first_of(self.layouts), schemas, self.order.distances(), self.early.distances())

    cdef list chunks(self):
        cdef list found = []
        for source, queue in enumerate(self.order.queues):
            for rows, since in queue:
                found.append(("waits", source, rows.batch, since, packed([rows.times]), packed(rows.columns)))
        for piece, earliest in self.output.pieces:
            found.append(("output", 0, piece, earliest, (), ()))
        return found

    cdef int go_on(self, tuple head) except -1:
        first, schemas, order, early = head[:4]
        for which, schema in enumerate(schemas):
            if schema is not None:
                self.layouts[which] = layout_from(schema_from(schema))
        self.early.go_on(early)
        if first is not None:
            self.times_of.begin_with(first, self.layouts[first])
            self.lengths = self.lengths_on(self.times_of.scale)
            self.order.delay_threshold = self.lengths.get("delay_threshold", 0)
            self.order.go_on(order)
        elif self.times_of.scale is not None:  # the columns are only known now
            self.begin(self.times_of.scale, self.points(self.times_of.scale), self.lengths)
        return 0

    cdef int load(self, str what, Py_ssize_t which, object batch, object number, object times, tuple columns) except -1:
        if what == "waits":
            self.order.queues[which].append((Rows(batch, *unpacked(times), unpacked(columns)), number))
        else:
            self.output.add(batch, number)
        return 0

    # --- batches ----------------------------------------------------------------------------------

    cdef object expected(self, Py_ssize_t which):
        """The columns that a batch of an input has to have; None: any."""
        layout = self.layouts[which]
        return None if layout is None else layout.outside

    cdef list columns_of(self, Py_ssize_t which, object batch, object schema, int64_t serial):
        return []

    cdef object columns_out(self, bint final):
        raise NotImplementedError

    cdef int begin(self, object scale, list points, dict lengths) except -1:
        """Begin: the type of times is known, and so are watermarks and lengths on their scale."""
        cdef Py_ssize_t which
        self.times_of.scale = scale
        self.lengths = lengths
        self.order.delay_threshold = lengths.get("delay_threshold", 0)
        if self.early.passed is not None:
            time, which = self.early.passed
            self.order.passed = (scale.point(time), which)
        for which, point in enumerate(points):
            if point is not None:
                self.order.advance(which, point)
        return 0

    cdef int take_late(self, object late, object lineage, list into) except -1:
        """Its rows are counted and dropped, or it goes to the side output."""
        cdef Batch side
        cdef Py_ssize_t port = self.sides["late"], at
        if port < 0:
            for at in range(len(late)):
                self.row_counts._late(self.name, late.slice(at, 1))
            return 0
        side = into[port]
        side.rows.append(late)
        if side.lineages is not None:
            side.lineages.append(self.left_of(lineage))
        return 0

    cdef int mark(self, Py_ssize_t which, Watermark mark, object lineage, list into) except -1:
        scale = self.times_of.scale
        if scale is not None:
            self.order.advance(which, scale.point(mark.instant))
        else:
            self.early.is_late(which, mark.instant)  # raises, if they cannot be compared
            self.early.advance(which, mark.instant)
        self.settle(lineage, into)
        return Merge.mark(self, which, mark, lineage, into)

    cdef object held_back(self, object instant):
        """A row that waits for a full batch may be earlier."""
        scale = self.times_of.scale
        times = [each for each in (self.oldest(), self.output.earliest()) if each is not None]
        if not times or not min(times) < scale.point(instant):
            return instant
        return scale.time(min(times))

    cdef object oldest(self):
        return None

    cdef int settle(self, object lineage, list into) except -1:
        return self.release(False, lineage, into)

    cdef int finish(self, object lineage, list into) except -1:
        return self.release(True, lineage, into)

    cdef int release(self, bint final, object lineage, list into) except -1:
        """Handle the rows that are ready. An error here belongs to no batch in particular."""
        try:
            if self.times_of.scale is None:
                self.early.bound()  # idle inputs have been passed by
            self.handle(self.order.ready(final), final, lineage, into)
            return self.put_out(final, lineage, into)
        except Exception as error:
            self.end(error)

    cdef int put_out(self, bint final, object lineage, list into) except -1:
        for batch in self.output.remaining() if final else self.output.full():
            self.add(list(handed_out(batch, self.columns_out(final))), lineage, into)
        return 0

    cdef int handle(self, list ready, bint final, object lineage, list into) except -1:
        raise NotImplementedError


@cython.final
cdef class MergeBatches(BatchesInTime):
    """All rows of all inputs, which have the same columns."""

    cdef object schema  # of outputs, since the first one

    cdef object expected(self, Py_ssize_t which):
        for layout in self.layouts:
            if layout is not None:
                return layout.outside
        return None

    cdef tuple values(self):
        return (*BatchesInTime.values(self), None if self.schema is None else saved_schema(self.schema))

    cdef int go_on(self, tuple head) except -1:
        BatchesInTime.go_on(self, head)
        if head[4] is not None:
            self.schema = schema_from(head[4])
        return 0

    cdef object columns_out(self, bint final):
        if self.schema is None:
            schemas = [layout.outside for layout in self.layouts if layout is not None]
            self.schema = in_common(schemas, are_all=final or len(schemas) == len(self.layouts))
        return self.schema

    cdef int handle(self, list ready, bint final, object lineage, list into) except -1:
        ready = [rows for rows in ready if rows is not None]
        if not ready:
            return 0
        batch = joined([rows.batch for rows in ready])
        if len(ready) > 1:
            batch = batch.take(in_one_order(ready)[0])
        self.output.add(batch, min([rows.times[0] for rows in ready]).item())
        return 0


cdef object length_of(str what, object scale, object length):
    """A length on a scale; ValueError if it has no 64 bits."""
    found = scale.length(what, length)
    if found > most_length and scale.name != "floats":
        raise ValueError(f"{what} must be at most 2**63 - 1 of {scale.name}, got {safe_repr(length)}")
    return found
