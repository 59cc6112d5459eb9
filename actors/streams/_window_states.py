"""States of windows: those of a key that are open. Sessions are in _sessions.pyx."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from callboard.streams._program import Side
from callboard.streams.windows import Sliding, Tumbling, Window

Function = Callable[[list[Any]], Any]


class ByCount:
    """Windows of so many rows."""

    def __init__(self, windows: Tumbling | Sliding, function: Function) -> None:
        self.size, self.function = windows.size, function
        self.step = step_of(windows)
        self.count = 0
        self.open: deque[tuple[int, list[Any]]] = deque()

    def receive(self, row: Any) -> Sequence[Any]:
        if self.count % self.step == 0:
            self.open.append((self.count, []))
        self.count += 1
        for _, rows in self.open:
            rows.append(row)
        if self.open and len(self.open[0][1]) == self.size:
            return [self.close(*self.open.popleft())]
        return ()

    def on_final(self) -> Sequence[Any]:
        return [self.close(*window) for window in self.open]

    def close(self, start: int, rows: list[Any]) -> Window[Any]:
        return Window(start, start + len(rows), self.function(rows))


class ByTime:
    """The base of windows by time: what the program Timed needs to know of a state.

    Derived classes have add(time, row), which answers whether the row was in time; close(time),
    which answers the windows that end by then, or all for None; and first_end(), of the open ones.
    """

    def __init__(
        self, windows: Tumbling | Sliding, function: Function, late: str, clock: Any
    ) -> None:
        assert windows.by is not None
        self.by, self.ordered, self.function = windows.by, windows.ordered, function
        self.included = late == "include"
        self.clock = clock
        self.latest: Any = None  # the time of the key's rows, if they come in order of time
        self.scheduled: Any = None

    def receive(self, row: Any) -> Sequence[Any]:
        time = self.by(row)
        closed: list[Any] = []
        if self.ordered and not self.has_come(time):
            self.latest = time
            closed = self.close(time)
        return closed if self.add(time, row) else [*closed, Side("late", row)]

    def on_watermark(self, time: Any) -> Sequence[Any]:
        if self.latest is not None and time <= self.latest:
            return ()
        return self.close(time)

    def on_final(self) -> Sequence[Any]:
        return self.close(None)

    def has_come(self, time: Any) -> bool:
        """Whether event time has come to a time, for this key."""
        clock, latest = self.clock.time, self.latest
        if clock is not None and time <= clock:
            return True
        return latest is not None and bool(time <= latest)

    @property
    def due(self) -> Any:
        end = self.first_end()
        if end is None and self.latest is not None:
            clock = self.clock.time
            return self.latest if clock is None or clock < self.latest else None
        return end

    def add(self, time: Any, row: Any) -> bool:
        raise NotImplementedError

    def close(self, time: Any) -> list[Any]:
        raise NotImplementedError

    def first_end(self) -> Any:
        raise NotImplementedError


class Fixed(ByTime):
    """Tumbling and sliding windows. The open ones are kept by their starts."""

    def __init__(
        self, windows: Tumbling | Sliding, function: Function, late: str, clock: Any
    ) -> None:
        super().__init__(windows, function, late, clock)
        self.origin, self.size, self.step = windows.origin, windows.size, step_of(windows)
        self.open: dict[Any, list[Any]] = {}

    def add(self, time: Any, row: Any) -> bool:
        start = self.origin + (time - self.origin) // self.step * self.step
        missed = found = False
        while start + self.size > time:
            if self.included or not self.has_come(start + self.size):
                self.open.setdefault(start, []).append(row)
                found = True
            else:
                missed = True
            start -= self.step
        return found or not missed  # a row between windows is not late

    def close(self, time: Any) -> list[Any]:
        windows = []
        for start in sorted(self.open):
            if time is None or start + self.size <= time:
                rows = self.open.pop(start)
                windows.append(Window(start, start + self.size, self.function(rows)))
        return windows

    def first_end(self) -> Any:
        return min(self.open) + self.size if self.open else None


def step_of(windows: Tumbling | Sliding) -> Any:
    """Say how far windows begin after each other."""
    return windows.step if isinstance(windows, Sliding) else windows.size
