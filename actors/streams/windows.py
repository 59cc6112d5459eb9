"""Windows: which rows belong together, and when they are handed out.

A window by count takes a number of rows, as they come. A window by event time takes the rows whose
times lie from its start up to, not including, its end. It closes at a watermark that has come to
its end, or at the end of the stream. Where rows come in order of time (`ordered=True`) each row is
a watermark as well, for the rows with its key.

The classes with an underscore are the states of keys, as `stateful()` would have them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, NamedTuple, TypeVar

from callboard.streams._program import Side
from callboard.streams.checks import check_count, check_function
from callboard.streams.errors import GraphError

T = TypeVar("T")
V = TypeVar("V")


class Window(NamedTuple, Generic[V]):
    """A closed window: its bounds, and what the function made of its rows.

    The bounds of a window by count are the numbers of its first row and of the one after its last,
    counted from 0 for each key.
    """

    start: Any
    end: Any
    value: V


@dataclass(frozen=True, kw_only=True)
class _Timed:
    by: Callable[[Any], Any] | None = None
    origin: Any = 0
    ordered: bool = False

    def _check_times(self) -> None:
        if self.by is not None:
            check_function("by", self.by)
        elif self.ordered:
            raise GraphError("ordered=True is about time, so it needs by=, the time of a row")


@dataclass(frozen=True)
class Tumbling(_Timed):
    """Windows of `size` rows, one after the other; or with `by`, the time of a row, of `size` time.

    `origin` is where a window by time starts; the others lie before and after it. With times that
    are `datetime`s, `size` is a `timedelta` and `origin` a `datetime`.
    """

    size: Any

    def __post_init__(self) -> None:
        self._check_times()
        _check_extent("size", self.size, self.by)

    def state(self, function: Callable[[list[Any]], Any], late: str, time: Any) -> Any:
        """Make the state of a key, when event time has come to `time`."""
        if self.by is None:
            return _ByCount(self.size, self.size, function)
        return _ByTime(self, self.size, function, late, time)


@dataclass(frozen=True)
class Sliding(_Timed):
    """Windows of `size`, each beginning `step` after the one before. See Tumbling."""

    size: Any
    step: Any

    def __post_init__(self) -> None:
        self._check_times()
        _check_extent("size", self.size, self.by)
        _check_extent("step", self.step, self.by)

    def state(self, function: Callable[[list[Any]], Any], late: str, time: Any) -> Any:
        """Make the state of a key, when event time has come to `time`."""
        if self.by is None:
            return _ByCount(self.size, self.step, function)
        return _ByTime(self, self.step, function, late, time)


@dataclass(frozen=True)
class Session:
    """Windows of rows that follow each other by less than `gap`; it ends `gap` after its last row.

    `by` is the time of a row.
    """

    gap: Any
    by: Callable[[Any], Any]
    ordered: bool = False

    def __post_init__(self) -> None:
        check_function("by", self.by)
        _check_extent("gap", self.gap, self.by)

    def state(self, function: Callable[[list[Any]], Any], late: str, time: Any) -> Any:
        """Make the state of a key, when event time has come to `time`."""
        return _Sessions(self, function, late, time)


def _check_extent(name: str, value: Any, by: Any) -> None:
    if by is None:
        check_count(name, value)
        return
    try:
        positive = value > type(value)()
    except TypeError:
        positive = False
    if not positive:
        raise GraphError(f"{name} is a length of time, and more than none, not {value!r}")


class _ByCount:
    def __init__(self, size: int, step: int, function: Callable[[list[Any]], Any]) -> None:
        self.size, self.step, self.function = size, step, function
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


class _ByTime:
    """The open windows are kept by their starts."""

    def __init__(
        self,
        windows: Tumbling | Sliding,
        step: Any,
        function: Callable[[list[Any]], Any],
        late: str,
        time: Any,
    ) -> None:
        assert windows.by is not None
        self.by, self.origin, self.ordered = windows.by, windows.origin, windows.ordered
        self.size, self.step, self.function = windows.size, step, function
        self.included = late == "include"
        self.time = time
        self.open: dict[Any, list[Any]] = {}

    def receive(self, row: Any) -> Sequence[Any]:
        time = self.by(row)
        closed = self.on_watermark(time) if self.ordered else []
        starts = self.starts(time)
        if self.time is not None and not self.included:
            in_time = [start for start in starts if start + self.size > self.time]
            if starts and not in_time:
                return [*closed, Side("late", row)]
            starts = in_time
        for start in starts:
            self.open.setdefault(start, []).append(row)
        return closed

    def starts(self, time: Any) -> list[Any]:
        start = self.origin + (time - self.origin) // self.step * self.step
        found = []
        while start + self.size > time:
            found.append(start)
            start -= self.step
        return found

    def on_watermark(self, time: Any) -> list[Any]:
        if self.time is not None and time <= self.time:
            return []
        self.time = time
        return self.close([start for start in self.open if start + self.size <= time])

    def on_final(self) -> list[Any]:
        return self.close(list(self.open))

    def close(self, starts: list[Any]) -> list[Any]:
        windows = []
        for start in sorted(starts):
            rows = self.open.pop(start)
            windows.append(Window(start, start + self.size, self.function(rows)))
        return windows

    def is_idle(self) -> bool:
        return not self.open


@dataclass(slots=True, eq=False)
class _OneSession:
    first: Any
    last: Any
    rows: list[Any]


class _Sessions:
    """The open sessions are kept in order of time."""

    def __init__(
        self, session: Session, function: Callable[[list[Any]], Any], late: str, time: Any
    ) -> None:
        self.by, self.gap, self.ordered = session.by, session.gap, session.ordered
        self.function = function
        self.included = late == "include"
        self.time = time
        self.open: list[_OneSession] = []

    def receive(self, row: Any) -> Sequence[Any]:
        time = self.by(row)
        closed = self.on_watermark(time) if self.ordered else []
        before, after = time - self.gap, time + self.gap
        near = [session for session in self.open if session.last > before and session.first < after]
        if near:
            self.join(near, time, row)
        elif self.included or self.time is None or after > self.time:
            self.open.append(_OneSession(time, time, [row]))
            self.open.sort(key=lambda session: session.first)
        else:
            return [*closed, Side("late", row)]
        return closed

    def join(self, near: list[_OneSession], time: Any, row: Any) -> None:
        session, *others = near
        for other in others:
            session.last = other.last
            session.rows += other.rows
            self.open.remove(other)
        session.first = min(session.first, time)
        session.last = max(session.last, time)
        session.rows.append(row)

    def on_watermark(self, time: Any) -> list[Any]:
        if self.time is not None and time <= self.time:
            return []
        self.time = time
        latest = time - self.gap
        closed = [session for session in self.open if session.last <= latest]
        if closed:
            self.open = [session for session in self.open if session.last > latest]
        return [self.close(session) for session in closed]

    def on_final(self) -> list[Any]:
        return [self.close(session) for session in self.open]

    def close(self, session: _OneSession) -> Window[Any]:
        return Window(session.first, session.last + self.gap, self.function(session.rows))

    def is_idle(self) -> bool:
        return not self.open
