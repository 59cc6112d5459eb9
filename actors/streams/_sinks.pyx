"""Programs at the ends of a graph that take rows one by one."""

from callboard.streams._program cimport Batch, Program, Watermark


cdef class Collect(Program):
    """Keeps the rows in a list."""

    cdef readonly list collected

    def __init__(self, str name, **options):
        super().__init__(name, kind="stateful", **options)
        self.collected = []

    cpdef process(self, Batch batch, list into):
        cdef list collected = self.collected
        for row in batch.rows:
            if type(row) is not Watermark:
                collected.append(row)


cdef class Call(Program):
    """Calls a function with each row, and another, if there is one, when the run is over."""

    cdef object function
    cdef object end

    def __init__(self, str name, function, end=None, **options):
        super().__init__(name, kind="stateful", **options)
        self.function = function
        self.end = end

    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1:
        cdef list rows = batch.rows
        cdef Py_ssize_t n = len(rows)
        while at[0] < n:
            row = rows[at[0]]
            if type(row) is not Watermark:
                self.function(row)
            at[0] += 1
        return 0

    cpdef close(self):
        if self.end is not None:
            self.end()


cdef class Hand(Program):
    """Hands a function all rows of a batch at once, if there are any."""

    cdef object function

    def __init__(self, str name, function, **options):
        super().__init__(name, kind="stateful", **options)
        self.function = function

    cpdef process(self, Batch batch, list into):
        rows = [row for row in batch.rows if type(row) is not Watermark]
        if not rows:
            return
        try:
            self.function(rows)
        except Exception as error:
            for at in range(len(batch.rows)):
                self.failed(batch, at, error, into)
