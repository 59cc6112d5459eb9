"""Programs of event time: watermarks, and the open sessions of each key, with the times when they close.

A row costs its key, its time, and a few comparisons, however many sessions are open. Sessions are kept in order of
time, and a row's session is looked for from the latest one on.
"""

import cython

from libc.math cimport isfinite
from libc.stdint cimport int64_t

from callboard.core.asserting cimport holds
from callboard.rows.instants cimport in_zone, instant_of, zone_of
from callboard.core.text import safe_repr
from callboard.streams.programs.program cimport (
    Batch, Program, PyVectorcall_Function, Watermark, call_one, pass_on, time_as_number,
    vectorcallfunc, watermark_at,
)
from callboard.streams.programs.rows.keyed cimport Timed
from callboard.streams.programs.program import Raised, SideOutput
from callboard.streams.programs.rows.tables cimport EventTime, Table
from callboard.streams.programs.unawaited cimport refuse_unawaited
from callboard.streams.programs.windows.window_states import whole
from callboard.streams.programs.windows.bounds import check_time
from callboard.streams.programs.windows.window import Window

cdef extern from "Python.h":
    object PyObject_CallOneArg(object function, object argument)


# Window's own, made by NamedTuple, is a function in Python.
cdef object make_tuple = tuple.__new__


cdef class Sessions(Timed):
    """Rows of a key that follow each other by less than a gap."""

    cdef object by, gap, function
    cdef bint ordered
    cdef bint exact     # the gap is a whole number, so with whole times no sum is rounded
    cdef bint included  # rows that are late open a session anew

    def __init__(self, str name, session, function, str late, **options):
        self.by = session.by
        self.gap = session.gap
        self.ordered = session.ordered
        self.exact = type(session.gap) is int
        self.function = function
        self.included = late == "include"
        super().__init__(name, None, **options)

    cdef object fresh(self, Table table):
        cdef OfKey state = OfKey.__new__(OfKey)
        state.program, state.clock, state.open = self, table.clock, []
        return state

    cdef int step(self, Table table, object key, object row, int64_t serial, list outs) except -1:
        cdef Py_ssize_t keys = len(table.states)
        cdef OfKey state = self.state_of(table, key, serial)
        cdef list outputs
        try:
            outputs = state.receive(row)
        finally:
            if state.is_to_be_scheduled():
                self.schedule_row(table, key, state, len(table.states) > keys)
                state.moved = False
        if outputs is not None:
            outs.extend(self.named(key, outputs))
        return 0


@cython.final
cdef class One:
    """One open session."""

    cdef object first, last
    cdef object end    # where it closes, if nothing joins it: a gap after the last
    cdef object start  # the first, as it was given
    cdef object zone   # of the last, as it was given
    cdef list rows


@cython.final
cdef class OfKey:
    """The open sessions of a key, in order of time: a state of a Timed program.

    Sessions do not touch, so the later one begins, the later it ends. Times are instants.
    """

    cdef Sessions program
    cdef EventTime clock
    cdef list open
    cdef object latest            # the time of the key's rows, if they come in order of time
    cdef bint moved               # the earliest end may have come nearer since it was scheduled
    cdef public object scheduled

    cdef list receive(self, row):
        """Add a row; return the outputs, or None. A row that is late, and so in no session, is one of them."""
        cdef list closed = None
        given = PyObject_CallOneArg(self.program.by, row)
        refuse_unawaited(given)
        time = instant_of(given)
        if self.program.exact and type(time) is int and len(self.open) == 1 and self.follows(time):
            (<One>self.open[0]).rows.append(row)
            return None
        try:
            before, after = time - self.program.gap, time + self.program.gap
        except TypeError:
            check_time(time)
            raise
        if not (before < time and time < after):
            check_time(time)
            raise ValueError(
                f"at the time {safe_repr(time)}, a gap of {safe_repr(self.program.gap)} has no effect: numbers that "
                "large are not precise enough"
            )
        if self.program.ordered and not self.has_come(time):
            self.latest = time
            closed = self.close(time)
            if closed is not None:
                whole(closed)
        if not self.add(row, given, time, before, after):
            closed = [] if closed is None else closed
            closed.append(SideOutput("late", row))
        return closed

    cdef bint follows(self, time) except -1:
        """Whether a time extends the only session, as most rows do; then the session lasts longer."""
        cdef One session = self.open[0]
        if type(session.last) is not int or time < session.last or time >= session.end:
            return False
        if time > session.last:
            session.last = time
            session.end = time + self.program.gap
            if self.program.ordered and (self.latest is None or time > self.latest):
                self.latest = time
        return True

    cdef bint add(self, row, given, time, before, after) except -1:
        """Add a row to the sessions that its gap reaches, which become one; False: it is late."""
        cdef Py_ssize_t end = len(self.open), begin
        cdef One session
        while end and not (<One>self.open[end - 1]).first < after:
            end -= 1
        begin = end
        while begin and (<One>self.open[begin - 1]).last > before:
            begin -= 1
        if begin == end:
            if not self.program.included and self.has_come(after):
                return False
            self.open.insert(begin, new_session(given, time, after, row))
            assert holds(are_apart(self.open))
            self.moved = True
            return True
        session = self.open[begin]
        if end - begin > 1:
            self.join(begin, end)
        if time < session.first:
            session.first, session.start = time, given
        if time > session.last:
            session.last, session.end, session.zone = time, after, zone_of(given)
        session.rows.append(row)
        return True

    cdef int join(self, Py_ssize_t begin, Py_ssize_t end) except -1:
        """Merge a session with those after it."""
        cdef One session = self.open[begin], other
        for other in self.open[begin + 1 : end]:
            session.last, session.end, session.zone = other.last, other.end, other.zone
            session.rows += other.rows
        del self.open[begin + 1 : end]
        assert holds(are_apart(self.open))
        return 0

    cdef list close(self, time):
        """Close the sessions that end by a time, or all for None; their windows, or None if there are none.
        """
        cdef Py_ssize_t count = 0
        cdef list closed, windows = []
        cdef One session
        for session in self.open:
            if time is not None and not session.end <= time:
                break
            count += 1
        if count == 0:
            return None
        closed = self.open[:count]
        assert holds(all([(<One>each).rows for each in closed]))
        del self.open[:count]
        self.moved = True
        for session in closed:
            try:
                value = PyObject_CallOneArg(self.program.function, session.rows)
                refuse_unawaited(value)
            except Exception as error:
                windows.append(Raised(error))  # of this window, and of no other
            else:
                windows.append(make_tuple(Window, (session.start, in_zone(session.end, session.zone), value)))
        return windows

    def on_watermark(self, time):
        """Close the sessions that end by a time."""
        if self.latest is not None and time <= self.latest:
            return None
        return self.close(time)

    def on_final(self):
        """Close all."""
        return self.close(None)

    @property
    def due(self):
        """A time before which on_watermark() has nothing to do; None if the key may be forgotten."""
        if self.open:
            return (<One>self.open[0]).end
        if self.latest is None:
            return None
        return self.latest if self.clock.time is None or self.clock.time < self.latest else None

    def snapshot(self):
        """Return the open sessions; a zone as a time in it."""
        cdef One each
        return [self.latest, [
            [each.start, in_zone(each.last, each.zone), each.first, each.last, each.end, each.rows]
            for each in self.open
        ]]

    def restore(self, state):
        """Restore the open sessions."""
        cdef One session
        self.latest, sessions = state
        for start, given, first, last, end, rows in sessions:
            session = new_session(start, first, end, None)
            session.last, session.zone, session.rows = last, zone_of(given), rows
            self.open.append(session)
        self.moved = True

    cdef bint has_come(self, time) except -1:
        """Whether event time has reached a time, for this key."""
        if self.clock.time is not None and time <= self.clock.time:
            return True
        return self.latest is not None and time <= self.latest

    cdef bint is_to_be_scheduled(self) noexcept:
        """Whether it may be due before it is asked. That is not so if a session only grows: it ends later."""
        return self.moved or self.scheduled is None or not self.open


cdef bint are_apart(list sessions) except -1:
    """For an assertion: sessions are in order of time, and do not overlap. Times of users' types are not looked at."""
    cdef One session, before = None
    for session in sessions:
        if type(session.last) is not int:
            return True
        if session.last < session.first or (before is not None and session.first <= before.last):
            return False
        before = session
    return True


cdef One new_session(given, time, end, row):
    cdef One session = One.__new__(One)
    session.first = session.last = time
    session.end = end
    session.start, session.zone = given, zone_of(given)
    session.rows = [row]
    return session


@cython.final
cdef class Clock(Program):
    """Passes rows on, and after each `every` of them a watermark `delay_threshold` behind their latest time, or at it
    for None, if that has moved since the last one. Rows that raise do not count.
    """

    cdef object by, delay_threshold
    cdef int64_t every
    cdef int64_t left     # the number of rows until a watermark is due
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
        """Take the time of a row; return the watermark that is due after it, or None. ValueError: no time."""
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
