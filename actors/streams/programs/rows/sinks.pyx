"""Programs of sinks, at the ends of a graph, that take rows one by one."""

from operator import length_hint

from callboard.streams.programs.program cimport Batch, Program, Watermark
from callboard.streams.programs.unawaited cimport refuse_unawaited

from callboard.streams.programs.saved import Columns


cdef class Collect(Program):
    """Keeps the rows in a list."""

    cdef readonly list collected

    def __init__(self, str name, **options):
        super().__init__(name, kind="stateful", **options)
        self.collected = []

    cpdef list snapshot(self, object kept):
        return [(), Columns([self.collected.copy()])]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        for (rows,) in columns:
            self.collected += rows

    cpdef process(self, Batch batch, list into):
        cdef list collected = self.collected
        for row in batch.rows:
            if type(row) is not Watermark:
                collected.append(row)


cdef class Call(Program):
    """Calls a function with each row, and these where given: `start` before the first round, `after` each batch,
    `finish` at the end of the stream, and `end` when the run is over.

    `place` is the end of the rows so far, as three functions: one returns it, one goes back to it, and one makes
    the rows durable on disk."""

    cdef object function
    cdef readonly object start
    cdef object finish
    cdef object end
    cdef object after
    cdef readonly object place

    def __init__(self, str name, function, start=None, finish=None, end=None, after=None, place=None, **options):
        super().__init__(name, kind="stateful", **options)
        self.function = function
        self.start = start
        self.finish = finish
        self.end = end
        self.after = after
        self.place = place

    cpdef list snapshot(self, object kept):
        return [] if self.place is None else [(self.place.note(),)]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        self.place.go_back(head[0])

    cpdef process(self, Batch batch, list into):
        Program.process(self, batch, into)
        hook = self.finish if batch.final else self.after
        if hook is not None:
            try:
                hook()
            except Exception as error:
                self.failed(batch, len(batch.rows), error, into)

    cdef str hook(self):
        return "in flush()"

    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1:
        cdef list rows = batch.rows
        cdef Py_ssize_t n = len(rows)
        while at[0] < n:
            row = rows[at[0]]
            if type(row) is not Watermark:
                refuse_unawaited(self.function(row))
            at[0] += 1
        return 0

    cpdef close(self):
        if self.end is not None:
            self.end()


cdef class TellAll(Program):
    """Tells all rows of a batch at once to a recipient that is not an actor of this process.

    If that raises, the row is unknown, so it ends the run."""

    cdef object tell_many

    def __init__(self, str name, recipient, **options):
        super().__init__(name, kind="stateful", **options)
        self.tell_many = recipient.tell_many

    cpdef process(self, Batch batch, list into):
        cdef list rows = [row for row in batch.rows if type(row) is not Watermark]
        if rows:
            try:
                refuse_unawaited(self.tell_many(rows))
            except Exception as error:
                self.end(error)


cdef class Tell(Program):
    """Tells each row to an actor, as many at once as its mailbox has room for."""

    cdef object tell_many

    def __init__(self, str name, ref, **options):
        super().__init__(name, kind="stateful", **options)
        self.tell_many = ref.tell_many

    cpdef process(self, Batch batch, list into):
        cdef list rows = batch.rows
        cdef list places = [at for at in range(len(rows)) if type(rows[at]) is not Watermark]
        left = iter([rows[at] for at in places])
        while length_hint(left):
            try:
                self.tell_many(left)
            except Exception as error:  # at the row that was taken last; those before it are sent
                self.failed(batch, places[-length_hint(left) - 1], error, into)
