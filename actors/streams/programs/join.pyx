"""A join of two streams within a window.

Gulisano et al. 2015 (ScaleJoin), section II: rows that are ready are taken in their one order; each
is compared with the window of the other stream, and is put into that of its own. What a row gives
depends on that order alone, so the outputs are the same however the rows arrived among each other.
"""

import cython

from collections import deque

from libc.math cimport INFINITY
from libc.stdint cimport int64_t, uint64_t

from callboard.streams.programs.in_time cimport InTime
from callboard.streams.programs.number_match cimport JoinMatch, NumberMatch

from callboard.streams.checks import check_value
from callboard.streams.programs.bounds import check_time

# So many rows are matched at once: all of their partners are there at one time.
cdef Py_ssize_t LOT = 64


@cython.final
cdef class Kept:
    """A row in its window."""

    cdef Py_ssize_t side
    cdef object time
    cdef int64_t serial
    cdef object row
    cdef object key       # what it has to have in common with a partner, or None
    cdef object of_key    # the rows of its window that have it, too
    cdef tuple near       # what has to be near to a partner's
    cdef bint matched     # it had a partner
    cdef object error     # what reading it raised, or None
    cdef uint64_t number  # of those that are matched as numbers


@cython.final
cdef class RowWindow:
    """The rows of one stream that others may still be compared with, and by their keys, if they have any."""

    cdef object rows
    cdef dict of_key

    def __init__(self, bint has_keys):
        self.rows = deque()
        self.of_key = {} if has_keys else None

    cdef int place(self, Kept kept) except -1:
        """Find where a row belongs. Raises what comparing its key does."""
        if self.of_key is not None:
            kept.of_key = self.of_key.get(kept.key)
            if kept.of_key is None:
                kept.of_key = self.of_key[kept.key] = deque()
        return 0

    cdef int add(self, Kept kept) except -1:
        """Keep a row that has a place."""
        self.rows.append(kept)
        if kept.of_key is not None:
            kept.of_key.append(kept)
        return 0

    cdef Kept oldest(self):
        return <Kept>self.rows[0] if self.rows else None

    cdef Kept pop(self):
        cdef Kept kept = self.rows.popleft()
        if kept.of_key is not None:
            kept.of_key.popleft()
            if not kept.of_key:
                try:
                    self.of_key.pop(kept.key, None)
                except Exception:  # of a key that cannot be compared any more: it stays, without a row
                    pass
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
    `by_numbers`   bands are about numbers, as far as one can see: NumberMatch says what it takes
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
    cdef NumberMatch match      # finds what is near; or None, and each pair is compared
    cdef dict of_number         # the rows in windows, for what it finds
    cdef uint64_t numbered      # rows, so far
    cdef uint64_t first_number  # of the lot that was matched last
    cdef size_t seen            # of its matches

    def __init__(self, str name, list drops, leaves, *, within, most, three_step, keys, bands, test, combine,
                 how, by_numbers, **options):
        super().__init__(name, drops, leaves, **options)
        self.within, self.most, self.three_step = within, most or 0, three_step
        self.keys = keys
        self.near = [[band[side] for band in bands] for side in range(2)]
        self.distances = [band[2] for band in bands]
        self.test, self.combine = test, combine
        self.once = how == "semi"
        self.pairs = how not in ("semi", "anti")
        self.lonely = [how in ("left", "outer", "anti"), how in ("right", "outer")]
        self.windows = [RowWindow(keys is not None) for _ in range(2)]
        if by_numbers:
            self.match = NumberMatch(within, self.distances)
            self.of_number = {}

    cdef int check(self, object time, bint is_row) except -1:
        InTime.check(self, time, is_row)
        if self.within is None or not is_row:
            return 0
        check_time(time)
        if self.first is None:
            time - time <= self.within  # raises, if they cannot be compared
            self.first = time
        elif type(time) is not type(self.first):
            for other in (self.first, *self.order.latest):
                if other is not None:
                    time - other  # noqa: B018
        return 0

    cdef int handle(self, list entries, object origin, list into) except -1:
        cdef Py_ssize_t begin
        for begin in range(0, len(entries), LOT):
            self.handle_lot([self.read(entry) for entry in entries[begin:begin + LOT]], origin, into)
        bound = self.order.bound()
        if bound is None:
            return 0
        time = bound[0]
        if time == INFINITY and not self.three_step and self.within is not None:
            return self.let_all_go(origin, into)
        return self.expire(time, origin, into)

    cdef int handle_lot(self, list rows, object origin, list into) except -1:
        cdef Kept kept
        cdef list partners
        if self.match is not None:
            self.match_numbers(rows)
        for kept in rows:
            try:
                self.expire(kept.time, origin, into)
                if kept.error is not None:
                    raise kept.error
                partners = self.partners(kept) if self.match is None else self.matched(kept)
                outputs = self.outputs(kept, partners)
                (<RowWindow>self.windows[kept.side]).place(kept)
            except Exception as error:
                if self.ends_with(error):
                    raise
                self.failed_at(kept.serial, kept.row, error, self.left_of(origin), into)
                continue
            self.add(outputs, origin, into)
            for each in partners:
                (<Kept>each).matched = kept.matched = True
            self.keep(kept, origin, into)
        return 0

    cdef object held_back(self, object time):
        """A row that is in a window yet may be part of an output."""
        cdef Kept kept = self.oldest()
        return time if kept is None else min(time, kept.time)

    cdef int finish(self, object origin, list into) except -1:
        InTime.finish(self, origin, into)
        return self.let_all_go(origin, into)

    # --- a row and its partners -------------------------------------------------------------------

    cdef Kept read(self, tuple entry):
        cdef Kept kept = Kept.__new__(Kept)
        kept.time, kept.side, kept.serial, kept.row = entry
        cdef list near = self.near[kept.side]
        try:
            if self.keys is not None:
                kept.key = self.keys[kept.side](kept.row)
                check_value("what join() compares", kept.key)
            if near:
                kept.near = tuple([read(kept.row) for read in near])
        except Exception as error:
            kept.error = error
        return kept

    cdef int match_numbers(self, list rows) except -1:
        """Find the partners of all rows; or, if one of them has something else than numbers, never again."""
        cdef Kept kept
        self.first_number = self.numbered
        self.seen = 0
        for kept in rows:
            if kept.error is not None:
                continue
            kept.number = self.numbered
            if not self.match.add(kept.side, kept.time, kept.number, kept.near):
                self.match = self.of_number = None
                return 0
            self.numbered += 1
        return self.match.match()

    cdef list matched(self, Kept kept):
        """The partners that were found for the next row, of those that were kept."""
        cdef list found = []
        cdef Kept other
        cdef JoinMatch match
        while self.seen < self.match.matches.size():
            match = self.match.matches[self.seen]
            if self.first_number + match.row > kept.number:
                break
            self.seen += 1
            if self.first_number + match.row < kept.number:  # of one that failed before its turn
                continue
            other = self.of_number.get(match.partner)
            if other is not None and (self.pairs or not self.is_settled(kept, other, found)):
                found.append(other)
        return found

    cdef list partners(self, Kept kept):
        """The partners of a row, by a look at all that it may be compared with."""
        cdef list found = []
        cdef Kept other
        for other in (<RowWindow>self.windows[1 - kept.side]).candidates(kept):
            if not self.pairs and self.is_settled(kept, other, found):
                if kept.side == 0:
                    break
                continue
            if kept.near is not None and not self.are_near(kept, other):
                continue
            if self.test is not None:
                if not (self.test(kept.row, other.row) if kept.side == 0 else self.test(other.row, kept.row)):
                    continue
            found.append(other)
        return found

    cdef bint is_settled(self, Kept kept, Kept other, list found):
        """Whether the row of the left stream has a partner already, where one is as good as all."""
        return bool(found) if kept.side == 0 else other.matched

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

    cdef int keep(self, Kept latest, object origin, list into) except -1:
        """A row comes into its window: let go what has to leave it for that."""
        cdef RowWindow window = self.windows[latest.side]
        window.add(latest)
        if self.match is not None:
            self.of_number[latest.number] = latest
        if self.within is None:
            if len(window.rows) > self.most:
                self.let_go(window.oldest(), origin, into)
        elif self.three_step:
            while latest.time - window.oldest().time > self.within:
                self.let_go(window.oldest(), origin, into)
        return 0

    cdef Kept oldest(self):
        """The row that is first of both windows, in the order in which rows are taken."""
        cdef Kept left = (<RowWindow>self.windows[0]).oldest()
        cdef Kept right = (<RowWindow>self.windows[1]).oldest()
        if left is None or (right is not None and right.time < left.time):
            return right
        return left

    cdef int let_all_go(self, object origin, list into) except -1:
        cdef Kept kept
        while True:
            kept = self.oldest()
            if kept is None:
                return 0
            self.let_go(kept, origin, into)

    cdef int let_go(self, Kept kept, object origin, list into) except -1:
        """The oldest row of its window leaves. If it had no partner it may be an output."""
        (<RowWindow>self.windows[kept.side]).pop()
        if self.match is not None:
            del self.of_number[kept.number]
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
