"""The rows of a join, and the rules of its windows."""

import cython

from callboard.core.asserting cimport holds
from callboard.rows.instants cimport instant_of
from callboard.streams.programs.joins.comparisons cimport Comparison
from callboard.streams.programs.rows.tables cimport check_key
from callboard.streams.programs.unawaited cimport refuse_unawaited

from callboard.core.checks import is_missing
from callboard.streams.programs.saved import Columns


@cython.final
@cython.no_gc
cdef class WindowRow:
    """A row in its window.

    The garbage collector skips it, as there are so many. Its only cycle leads through a run, which drops its rows at
    its end.
    """


@cython.final
cdef class RowReader:
    """Reads the compared values of rows, and numbers the rows."""

    def __init__(self, keys, near, comparisons):
        self.keys, self.near, self.comparisons = keys, near, comparisons
        self.firsts = [None] * len(comparisons)

    cdef WindowRow read(self, tuple entry):
        cdef WindowRow kept = WindowRow.__new__(WindowRow)
        kept.time, kept.side, kept.serial, kept.row = entry
        kept.number, kept.place = self.taken, self.placed[kept.side]
        self.taken += 1
        self.placed[kept.side] += 1
        assert holds(self.taken == self.placed[0] + self.placed[1])
        cdef list near = self.near[kept.side]
        try:
            if self.keys is not None:
                given = self.keys[kept.side](kept.row)
                refuse_unawaited(given)
                kept.key = instant_of(given)
                check_key("the key of a row in join()", kept.key)
            if near:
                kept.near = self.values(kept, near)
                kept.is_alone = kept.near is None
        except Exception as error:
            kept.error, kept.is_alone = error, True
        return kept

    cdef tuple distances(self):
        """The reader's state, for a snapshot."""
        return self.firsts, self.taken, self.placed[0], self.placed[1]

    cdef int go_on(self, tuple distances) except -1:
        self.firsts, self.taken, self.placed[0], self.placed[1] = distances
        return 0

    cdef tuple values(self, WindowRow kept, list near):
        """Return the values to compare, or None if one is missing. NaN is a number here, near to no other."""
        cdef list values = [instant_of(read(kept.row)) for read in near]
        cdef bint is_alone = False
        cdef Py_ssize_t i
        for i, value in enumerate(values):
            refuse_unawaited(value)
            if not is_plain(value) and is_missing(value):
                is_alone = True
            elif value == value:
                self.check(i, value)
        return None if is_alone else tuple(values)

    cdef int check(self, Py_ssize_t i, object value) except -1:
        """Raise TypeError for a value that cannot be compared with the first one: later rows would meet it."""
        first = self.firsts[i]
        if is_plain(value) and is_plain(first):
            return 0
        (<Comparison?>self.comparisons[i]).check(value, first)
        if first is None:
            self.firsts[i] = value
        return 0


cdef bint is_plain(object value):
    """Whether it is a plain number, as most are."""
    return type(value) is int or type(value) is float


@cython.final
cdef class SavedRows:
    """The rows of all joins in a snapshot. Programs that share a row share it again after a restore."""

    def __init__(self, columns=()):
        """Make the rows of these columns, each of which is whole or in pieces."""
        cdef WindowRow kept
        cdef int flags
        self.rows, self.numbers, self.ahead = [], {}, []
        for piece in columns:
            for side, time, serial, row, number, place, key, near, flags in zip(*piece, strict=True):
                if not 0 <= side <= 1:
                    raise ValueError(f"stream of a row of a join: expected 0 or 1, got {side}")
                kept = WindowRow.__new__(WindowRow)
                kept.side, kept.time, kept.serial, kept.row = side, time, serial, row
                kept.number, kept.place, kept.key, kept.near = number, place, key, near
                kept.matched, kept.failed, kept.settled = flags & 1, flags >> 1 & 1, flags >> 2 & 1
                kept.gone, kept.is_alone = flags >> 3 & 1, flags >> 4 & 1
                self.rows.append(kept)

    def columns(self):
        """Return them as Columns."""
        cdef WindowRow each
        cdef list rows = self.rows
        return Columns([
            [each.side for each in rows], [each.time for each in rows], [each.serial for each in rows],
            [each.row for each in rows], [each.number for each in rows], [each.place for each in rows],
            [each.key for each in rows], [each.near for each in rows],
            [flags_of(each) for each in rows],
        ], (0, 2, 4, 5, 8))

    cdef int64_t number(self, WindowRow kept) except -1:
        """Return the number of a row. A new row gets the next one."""
        assert holds(kept.error is None)  # a row with an error is in no window
        number = self.numbers.setdefault(<size_t><void*>kept, len(self.rows))
        if number == len(self.rows):
            self.rows.append(kept)
        return number

    cdef list numbers_of(self, rows):
        return [self.number(kept) for kept in rows]

    cdef WindowRow row(self, int64_t number):
        return self.rows[number]

    cdef list rows_of(self, list numbers):
        return [self.rows[number] for number in numbers]


cdef int flags_of(WindowRow kept):
    return kept.matched | kept.failed << 1 | kept.settled << 2 | kept.gone << 3 | kept.is_alone << 4


@cython.final
cdef class WindowRule:
    """The extent of a window: a length of time, or a pair of lengths, before and after a left row; or else the latest
    `most` rows of a stream.

    By the strict rule a row leaves before a row comes that is too late for it. Otherwise a row of its own stream
    pushes it out: with `three_step` (Kang et al. 2003) by time, else by number.
    """

    def __init__(self, within, most, bint three_step):
        self.within, self.most = within, most or 0
        if within is not None:
            self.lengths = (within[1], within[0]) if isinstance(within, tuple) else (within, within)
            self.is_even = self.lengths[0] == self.lengths[1]
        self.three_step = three_step and within is not None
        self.is_strict = not three_step and within is not None

    def __reduce__(self):
        return WindowRule, (self.within, self.most, self.three_step)

    cdef bint is_over(self, WindowRow kept, object time) except -1:
        return self.is_strict and time - kept.time > self.lengths[kept.side]

    cdef bint is_first_over(self, WindowRow kept, WindowRow other) except -1:
        """Whether a row becomes too old before a row of the other stream that was taken before it."""
        if not self.is_strict or self.is_even:
            return False
        return kept.time + self.lengths[kept.side] < other.time + self.lengths[other.side]

    cdef bint is_pushed_out(self, WindowRow kept, WindowRow latest) except -1:
        if self.three_step:
            return latest.time - kept.time > self.lengths[kept.side]
        return not self.is_strict and latest.place - kept.place >= self.most
