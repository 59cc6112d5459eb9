"""The program of the operator that says how far event time has come."""

import cython

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from callboard.core.asserting cimport holds
from callboard.streams.programs.program cimport (
    Batch, Program, PyVectorcall_Function, Watermark, call_one, pass_on, time_as_number,
    vectorcallfunc, watermark_at,
)
from callboard.rows.instants cimport in_zone, instant_of, zone_of
from callboard.core.text import safe_repr
from callboard.streams.programs.windows.bounds import check_time


@cython.final
cdef class Clock(Program):
    """The rows, and after each `every` of them a watermark `delay_threshold` behind their latest time, or at it for
    None, if that has moved since the last one. Rows that raise are not among them.
    """

    cdef object by, delay_threshold
    cdef int64_t every
    cdef int64_t left     # how many rows from now a watermark is due
    cdef object latest    # the latest instant, or None
    cdef object given     # the time that it was given as
    cdef bint moved       # it is later than at the last watermark

    def __init__(self, str name, by, delay_threshold, int64_t every, **options):
        super().__init__(name, kind="stateful", **options)
        self.by, self.delay_threshold = by, delay_threshold
        self.every = self.left = every

    cpdef list snapshot(self, object kept):
        return [(self.left, self.latest, self.given, self.moved)]

    cpdef restore(self, tuple head, list columns, object kept, bint divided):
        self.left, self.latest, self.given, self.moved = head

    cdef int work(self, Batch batch, Py_ssize_t* at, list into) except -1:
        cdef list rows = batch.rows, lineages = batch.lineages
        cdef Batch main = into[0]
        cdef list out = main.rows
        cdef Py_ssize_t n = len(rows)
        cdef Watermark watermark
        by = self.by
        cdef vectorcallfunc how = PyVectorcall_Function(by)
        while at[0] < n:
            row = rows[at[0]]
            if type(row) is Watermark:
                pass_on(batch, at[0], into)
            else:
                watermark = self.count(call_one(how, by, row))
                out.append(row)
                if watermark is not None:
                    out.append(watermark)
                if lineages is not None:
                    main.lineages.extend([lineages[at[0]]] * (1 if watermark is None else 2))
            at[0] += 1
        if self.latest is not None:
            self.newest.note(time_as_number(self.latest))
        return 0

    cdef Watermark count(self, given):
        """Take the time of a row; the watermark that is due after it, or None. ValueError: no time."""
        time = instant_of(given)
        if type(time) is not int and not (type(time) is float and isfinite(<double>time)):
            check_time(time)
        if self.latest is None or time > self.latest:
            self.latest, self.given = time, given
            self.moved = True
        self.left -= 1
        assert holds(0 <= self.left < self.every)
        if self.left > 0:
            return None
        self.left = self.every
        if not self.moved:
            return None
        assert holds(self.latest is not None and self.given is not None)
        self.moved = False
        if self.delay_threshold is None:
            return watermark_at(self.given)
        come_to = self.latest - self.delay_threshold
        if come_to > self.latest:  # NumPy's unsigned numbers
            raise ValueError(
                f"{safe_repr(self.delay_threshold)} before the time {safe_repr(self.latest)} is {safe_repr(come_to)}, "
                "which is after it"
            )
        return watermark_at(in_zone(come_to, zone_of(self.given)))
