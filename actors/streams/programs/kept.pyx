"""Rows of a join, and which of them are in its windows."""

import cython

from callboard.streams.programs.unawaited cimport refuse_unawaited

from callboard.streams.checks import check_value


@cython.final
@cython.no_gc
cdef class Kept:
    """A row in its window.

    The garbage collector does not look through it: there are as many as rows in windows, and it is in
    no circle but one that leads through a run, which lets them go at its end.
    """


@cython.final
cdef class RowReader:
    """Reads what is compared of rows that are taken, and numbers them."""

    def __init__(self, keys, near):
        self.keys, self.near = keys, near

    cdef Kept read(self, tuple entry):
        cdef Kept kept = Kept.__new__(Kept)
        kept.time, kept.side, kept.serial, kept.row = entry
        kept.number, kept.place = self.taken, self.placed[kept.side]
        self.taken += 1
        self.placed[kept.side] += 1
        cdef list near = self.near[kept.side]
        try:
            if self.keys is not None:
                kept.key = self.keys[kept.side](kept.row)
                refuse_unawaited(kept.key)
                check_value("what join() compares", kept.key)
            if near:
                kept.near = tuple([read(kept.row) for read in near])
                for value in kept.near:
                    refuse_unawaited(value)
        except Exception as error:
            kept.error = error
        return kept


@cython.final
cdef class WindowRule:
    """`within` a time; or else the latest `most` rows of a stream.

    By the strict rule a row leaves before one comes that is too late for it. Otherwise it is pushed
    out by one of its own stream: by `three_step` (Kang et al. 2003) as its time says, else by number.
    """

    def __init__(self, within, most, bint three_step):
        self.within, self.most = within, most or 0
        self.three_step = three_step and within is not None
        self.is_strict = not three_step and within is not None

    def __reduce__(self):
        return WindowRule, (self.within, self.most, self.three_step)

    cdef bint is_over(self, Kept kept, object time) except -1:
        return self.is_strict and time - kept.time > self.within

    cdef bint is_pushed_out(self, Kept kept, Kept latest) except -1:
        if self.three_step:
            return latest.time - kept.time > self.within
        return not self.is_strict and latest.place - kept.place >= self.most
