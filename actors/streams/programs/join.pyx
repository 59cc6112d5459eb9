"""A join of two streams within a window.

Gulisano et al. 2015 (ScaleJoin), section II: rows that are ready are taken in their one order; each
is compared with the window of the other stream, and is put into that of its own. What a row gives
depends on that order alone, so the outputs are the same however the rows arrived among each other.
"""

import cython

from collections import deque

from libc.stdint cimport int64_t

from callboard.streams.programs.in_time cimport InTime

from callboard.streams.checks import check_value
from callboard.streams.programs.bounds import check_time


@cython.final
cdef class Kept:
    """A row in its window."""

    cdef Py_ssize_t side
    cdef object time
    cdef int64_t serial
    cdef object row
    cdef object key       # what it has to have in common with a partner, or None
    cdef tuple near       # what has to be near to a partner's
    cdef bint matched     # it had a partner


@cython.final
cdef class JoinWindow:
    """The rows of one stream that others may still be compared with, and by their keys, if they have any."""

    cdef object rows
    cdef dict of_key

    def __init__(self, bint has_keys):
        self.rows = deque()
        self.of_key = {} if has_keys else None

    cdef int add(self, Kept kept) except -1:
        self.rows.append(kept)
        if self.of_key is None:
            return 0
        rows = self.of_key.get(kept.key)
        if rows is None:
            rows = self.of_key[kept.key] = deque()
        rows.append(kept)
        return 0

    cdef Kept oldest(self):
        return <Kept>self.rows[0] if self.rows else None

    cdef Kept pop(self):
        cdef Kept kept = self.rows.popleft()
        if self.of_key is not None:
            rows = self.of_key[kept.key]
            rows.popleft()
            if not rows:
                del self.of_key[kept.key]
        return kept

    cdef object candidates(self, Kept probe):
        """The rows that a row of the other stream is to be compared with, in order."""
        return self.rows if self.of_key is None else self.of_key.get(probe.key, ())


@cython.final
cdef class Join(InTime):
    """Pairs of rows that are partners, by `keys`, `bands` and `test`, as far as there are any.

    `within`       of windows by time; else None, and `most` is how many rows a window has
    `three_step`   a window loses rows when one of its own stream has come (Kang et al. 2003), not
                   before it is compared with one of the other
    `keys`         for each stream, a function that gives what partners have in common
    `bands`        for each stream, functions that give what is near in partners; and how near
    `how`          "inner", "left", "right", "outer", "semi" or "anti"
    """

    cdef object within
    cdef Py_ssize_t most
    cdef bint three_step
    cdef tuple keys
    cdef list near        # for each stream, functions
    cdef list distances
    cdef object test
    cdef object combine   # None: a pair is a tuple
    cdef bint pairs       # it gives pairs
    cdef bint once        # it gives rows of the left stream that have a partner
    cdef list lonely      # for each stream, whether it gives rows without one
    cdef list windows
    cdef object first     # the time of the first row

    def __init__(self, str name, list drops, leaves, *, within, most, three_step, keys, bands, test, combine,
                 how, **options):
        super().__init__(name, drops, leaves, **options)
        self.within, self.most, self.three_step = within, most or 0, three_step
        self.keys = keys
        self.near = [[band[side] for band in bands] for side in range(2)]
        self.distances = [band[2] for band in bands]
        self.test, self.combine = test, combine
        self.once = how == "semi"
        self.pairs = how not in ("semi", "anti")
        self.lonely = [how in ("left", "outer", "anti"), how in ("right", "outer")]
        self.windows = [JoinWindow(keys is not None) for _ in range(2)]

    cdef int check(self, object time, bint is_row) except -1:
        InTime.check(self, time, is_row)
        if self.within is None:
            return 0
        if is_row:
            check_time(time)
        if self.first is None:
            time - time <= self.within  # raises, if they cannot be compared
            self.first = time
        else:
            time - self.first  # noqa: B018
        return 0

    cdef int handle(self, list entries, object origin, list into) except -1:
        cdef Py_ssize_t side
        cdef int64_t serial
        cdef Kept kept
        cdef list partners
        for time, side, serial, row in entries:
            self.expire(time, origin, into)
            kept = Kept.__new__(Kept)
            kept.side, kept.time, kept.serial, kept.row = side, time, serial, row
            try:
                self.read(kept)
                partners = self.partners(kept)
                outputs = self.outputs(kept, partners)
            except Exception as error:
                self.failed_at(serial, row, error, self.left_of(origin), into)
                continue
            self.add(outputs, origin, into)
            for each in partners:
                (<Kept>each).matched = kept.matched = True
            (<JoinWindow>self.windows[side]).add(kept)
            self.follow(kept, origin, into)
        bound = self.order.bound()
        if bound is not None:
            self.expire(bound[0], origin, into)
        return 0

    cdef int finish(self, object origin, list into) except -1:
        cdef Kept kept
        InTime.finish(self, origin, into)
        while True:
            kept = self.oldest()
            if kept is None:
                return 0
            self.let_go(kept, origin, into)

    # --- a row and its partners -------------------------------------------------------------------

    cdef int read(self, Kept kept) except -1:
        if self.keys is not None:
            kept.key = self.keys[kept.side](kept.row)
            check_value("what join() compares", kept.key)
        cdef list near = self.near[kept.side]
        if near:
            kept.near = tuple([read(kept.row) for read in near])
        return 0

    cdef list partners(self, Kept kept):
        cdef list found = []
        cdef Kept other
        cdef bint only_one = not self.pairs and kept.side == 0
        for other in (<JoinWindow>self.windows[1 - kept.side]).candidates(kept):
            if not self.pairs and other.side == 0 and other.matched:
                continue
            if kept.near is not None and not self.are_near(kept, other):
                continue
            if self.test is not None:
                if not (self.test(kept.row, other.row) if kept.side == 0 else self.test(other.row, kept.row)):
                    continue
            found.append(other)
            if only_one:
                break
        return found

    cdef bint are_near(self, Kept kept, Kept other) except -1:
        cdef Py_ssize_t i
        for i, distance in enumerate(self.distances):
            if not abs(kept.near[i] - other.near[i]) <= distance:
                return False
        return True

    cdef list outputs(self, Kept kept, list partners):
        cdef Kept other
        if self.pairs:
            if kept.side == 0:
                return [self.combined(kept.row, other.row) for other in partners]
            return [self.combined(other.row, kept.row) for other in partners]
        if not self.once:
            return []
        if kept.side == 0:
            return [kept.row] if partners else []
        return [other.row for other in partners]

    cdef object combined(self, left, right):
        return (left, right) if self.combine is None else self.combine(left, right)

    # --- windows ----------------------------------------------------------------------------------

    cdef int expire(self, object time, object origin, list into) except -1:
        """No row before `time` comes any more: let go what is too old for all that comes."""
        cdef Kept kept
        if self.within is None or self.three_step:
            return 0
        while True:
            kept = self.oldest()
            if kept is None or not time - kept.time > self.within:
                return 0
            self.let_go(kept, origin, into)

    cdef int follow(self, Kept latest, object origin, list into) except -1:
        """A row has come into its window: let go what has to leave it for that."""
        cdef JoinWindow window = self.windows[latest.side]
        if self.within is None:
            if len(window.rows) > self.most:
                self.let_go(window.oldest(), origin, into)
        elif self.three_step:
            while latest.time - window.oldest().time > self.within:
                self.let_go(window.oldest(), origin, into)
        return 0

    cdef Kept oldest(self):
        """The row that is first of both windows, in the order in which rows are taken."""
        cdef Kept left = (<JoinWindow>self.windows[0]).oldest()
        cdef Kept right = (<JoinWindow>self.windows[1]).oldest()
        if left is None or (right is not None and right.time < left.time):
            return right
        return left

    cdef int let_go(self, Kept kept, object origin, list into) except -1:
        """The oldest row of its window leaves. If it had no partner it may be an output."""
        (<JoinWindow>self.windows[kept.side]).pop()
        if kept.matched or not self.lonely[kept.side]:
            return 0
        try:
            if not self.pairs:
                output = kept.row
            elif kept.side == 0:
                output = self.combined(kept.row, None)
            else:
                output = self.combined(None, kept.row)
        except Exception as error:
            return self.failed_at(kept.serial, kept.row, error, self.left_of(origin), into)
        return self.add([output], origin, into)
