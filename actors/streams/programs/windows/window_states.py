"""The open windows of a key. Sessions are in event_time.pyx."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from callboard.rows.instants import instant_of
from callboard.streams.programs.program import Answering, Raised, SideOutput, check_answer
from callboard.streams.programs.windows.bounds import Bounds, check_time
from callboard.streams.programs.windows.local_days import LocalDays
from callboard.streams.programs.windows.window import SlidingWindow, TumblingWindow, Window

Function = Callable[[list[Any]], Any]


class CountedWindows:
    """Windows of a number of rows."""

    def __init__(self, windows: TumblingWindow | SlidingWindow, function: Function) -> None:
        self.size, self.step, self.function = windows.size, windows._step, function
        self.count = 0
        self.open: deque[tuple[int, list[Any]]] = deque()

    def receive(self, row: Any) -> Sequence[Any]:
        if self.count % self.step == 0:
            self.open.append((self.count, []))
        self.count += 1
        for _, rows in self.open:
            rows.append(row)
        if self.open and len(self.open[0][1]) == self.size:
            return whole([self.close(*self.open.popleft())])
        return ()

    def on_final(self) -> Sequence[Any]:
        return [self.close(*window) for window in self.open]

    def close(self, start: int, rows: list[Any]) -> Window[Any] | Raised:
        return closed(start, start + len(rows), self.function, rows)

    def snapshot(self) -> Any:
        return [self.count, [[start, rows] for start, rows in self.open]]

    def restore(self, state: Any) -> None:
        self.count, windows = state
        self.open.extend((start, rows) for start, rows in windows)


class TimedWindows:
    """Tumbling and sliding windows by time. The open ones are kept by their numbers.

    Times are instants.
    """

    def __init__(
        self,
        windows: TumblingWindow | SlidingWindow,
        bounds: Bounds | LocalDays,
        function: Function,
        late: str,
        clock: Any,
    ) -> None:
        assert windows.by is not None
        self.by, self.ordered, self.function = Answering(windows.by), windows.ordered, function
        self.included = late == "include"
        self.clock = clock
        self.latest: Any = None  # the time of the key's rows, if they come in order of time
        self.scheduled: Any = None
        self.bounds = bounds
        self.open: dict[int, list[Any]] = {}
        self.first: int | None = None  # of the open ones
        self.ends: Any = None  # of that one
        self.found: int | None = None  # the latest window that had started at the last row's time
        self.start: Any = None  # of that one
        self.after: Any = None  # of the one after it
        # Where the last row is, and so is each row from a time up to another, or None. All windows
        # that end before these times have been closed, if rows come in order of time.
        self.together: list[list[Any]] | None = None
        self.since: Any = None
        self.until: Any = None

    def receive(self, row: Any) -> Sequence[Any]:
        time = instant_of(self.by(row))
        try:
            is_with_last = self.together is not None and self.since <= time < self.until
        except TypeError:
            check_time(time)
            raise
        if is_with_last:
            if self.ordered and not self.has_come(time):
                self.latest = time
            for rows in self.together or ():
                rows.append(row)
            return ()
        self.find(time)
        ended: list[Any] = []
        if self.ordered and not self.has_come(time):
            self.latest = time
            ended = whole(self.close(time))
        return ended if self.add(time, row) else [*ended, SideOutput("late", row)]

    def on_watermark(self, time: Any) -> Sequence[Any]:
        if self.latest is not None and time <= self.latest:
            return ()
        return self.close(time)

    def on_final(self) -> Sequence[Any]:
        return self.close(None)

    def snapshot(self) -> Any:
        return [self.latest, [[number, rows] for number, rows in self.open.items()]]

    def restore(self, state: Any) -> None:
        self.latest, windows = state
        self.open = dict(windows)
        self.begin_at(min(self.open, default=None))

    def has_come(self, time: Any) -> bool:
        """Return whether event time has reached a time, for this key."""
        clock, latest = self.clock.time, self.latest
        if clock is not None and time <= clock:
            return True
        return latest is not None and bool(time <= latest)

    @property
    def due(self) -> Any:
        if self.first is not None:
            return self.ends
        if self.latest is None:
            return None
        return self.latest if self.clock.time is None or self.clock.time < self.latest else None

    def begin_at(self, number: int | None) -> None:
        self.first = number
        self.ends = None if number is None else self.bounds.end(number)

    def find(self, time: Any) -> None:
        if self.found is None or not self.start <= time < self.after:
            found = self.found = self.bounds.latest(time)
            self.start, self.after = self.bounds.start(found), self.bounds.start(found + 1)

    def add(self, time: Any, row: Any) -> bool:
        assert self.found is not None
        number, until = self.found, self.after
        together: list[list[Any]] = []
        self.together = None
        while (end := self.bounds.end(number)) > time:
            if self.has_come(end) and not self.included:
                return number < self.found  # all before have ended, too
            rows = self.open.setdefault(number, [])
            rows.append(row)
            together.append(rows)
            until = min(until, end)
            if self.first is None or number < self.first:
                self.begin_at(number)
            number -= 1
        if together and not self.included:
            self.together, self.since, self.until = together, max(self.start, end), until
        return True  # in no window, too, if it is between two

    def close(self, time: Any) -> list[Any]:
        windows = []
        for number in sorted(self.open):
            end = self.bounds.end(number)
            if time is not None and end > time:
                break
            rows = self.open.pop(number)
            self.together = None
            self.begin_at(min(self.open, default=None))
            start = self.bounds.start(number)
            said = self.bounds.said(start), self.bounds.said(end)
            windows.append(closed(*said, self.function, rows))
        return windows


def closed(start: Any, end: Any, function: Function, rows: list[Any]) -> Window[Any] | Raised:
    """Make a window. If the function raises, that is an error of this window, and of no other."""
    try:
        value = function(rows)
        check_answer(value)
        return Window(start, end, value)
    except Exception as error:
        return Raised(error)


def whole(windows: list[Any]) -> list[Any]:
    """Return the windows that a row closes. If one has raised, the row has."""
    for window in windows:
        if type(window) is Raised:
            raise window.error
    return windows
