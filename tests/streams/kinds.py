"""The kinds of operators in random graphs: how each is called, and its model.

A model has push(row), which answers outputs; if it needs to, mark(time), end() and idle().
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from callboard.streams import (
    SessionWindow,
    SlidingWindow,
    Stream,
    TumblingWindow,
    Watermark,
    Window,
)
from tests.streams.functions import Functions, Many, Refused, Running, number


@dataclass(frozen=True)
class Op:
    """An operator: `kind` is a method of a stream. With `key` it is keyed."""

    kind: str
    functions: Functions = field(default_factory=Functions)
    errors: str = "fail"
    key: Functions | None = None
    partitions: int = 1
    partition: str = "hash"
    windows: str = ""
    size: int = 5
    step: int = 5
    ordered: bool = False
    late: str = "drop"
    releases_gil: bool = False
    in_flight: int = 0
    generates: bool = False  # its function is a generator

    def add_to(self, stream: Stream[Any]) -> Stream[Any]:
        """Add this operator to a stream."""
        kind = KINDS[self.kind]
        options = kind.options(self)
        if self.key is not None or kind.takes_errors:
            options["errors"] = self.errors
        if self.releases_gil:
            options["releases_gil"] = True
        if self.in_flight:
            options["in_flight"] = self.in_flight
        source: Any = stream
        if self.key is not None:
            source = stream.key_by(self.key.key, **self.partitioning())
        made = getattr(source, self.kind)(*kind.arguments(self), **options)
        sides = [made.side(name) for name in made._outlet.operator.ports[1:]]
        joined: Stream[Any] = made.union(*sides) if sides else made
        return joined

    def partitioning(self) -> dict[str, Any]:
        """Make the options of `key_by()`."""
        if self.partition == "ranges":
            return {"partition": list(range(1, self.partitions + 1))}
        by = (lambda key: 5 - 3 * key) if self.partition == "function" else None
        return {"partition": by, "partitions": self.partitions}

    def spec(self) -> TumblingWindow | SlidingWindow | SessionWindow:
        """Make the windows."""
        time = self.functions.time
        if self.windows == "session":
            return SessionWindow(self.size, time, ordered=self.ordered)
        if self.windows == "count":
            return SlidingWindow(self.size, self.step)
        if self.step == self.size:
            return TumblingWindow(self.size, by=time, ordered=self.ordered)
        return SlidingWindow(self.size, self.step, by=time, ordered=self.ordered)


class Late:
    def __init__(self, row: Any) -> None:
        self.row = row


class Raised:
    """A window whose function raised."""

    def __init__(self, error: Exception) -> None:
        self.error = error


def whole(outs: list[Any]) -> list[Any]:
    """What a row closed, if nothing of it raised."""
    for out in outs:
        if isinstance(out, Raised):
            raise out.error
    return outs


class Each:
    """An operator without a state."""

    def __init__(self, function: Callable[[Any], list[Any]]) -> None:
        self.push = function


class Accumulating:
    def __init__(self, op: Op, time: Any) -> None:
        self.op, self.total = op, 0

    def push(self, row: Any) -> list[Any]:
        self.total = self.op.functions.add(self.total, row)
        return [self.total] if self.op.kind == "scan" else []

    def end(self) -> list[Any]:
        return [self.total] if self.op.kind == "fold" else []


class All:
    """The base of operators that look at all rows so far."""

    def __init__(self, op: Op, time: Any) -> None:
        self.op, self.time = op, time
        self.functions: Functions = op.functions
        self.rows: list[Any] = []

    def closed_window(self, start: Any, end: Any, rows: list[Any]) -> Window[Any] | Raised:
        try:
            return Window(start, end, self.functions.checked_total(rows))
        except Refused as error:
            return Raised(error)


class Counting(All):
    def push(self, row: Any) -> list[Any]:
        self.rows.append(row)
        return [len(self.rows)]


class Sampling(All):
    def push(self, row: Any) -> list[Any]:
        self.rows.append(row)
        return [row] if (len(self.rows) - 1) % self.op.step == 0 else []

    def mark(self, time: Any) -> list[Any]:
        self.rows.append(time)
        return []


class Marking(All):
    def push(self, row: Any) -> list[Any]:
        self.rows.append(self.functions.time(row))
        latest, step = max(self.rows), self.op.step
        if len(self.rows) % step or max(self.rows[:-step], default=None) == latest:
            return [row]
        return [row, Watermark(latest - self.op.size)]


class Listing(All):
    def push(self, row: Any) -> list[Any]:
        self.rows.append(row)
        return self.end() if len(self.rows) == self.op.size else []

    def end(self) -> list[Any]:
        rows, self.rows = self.rows, []
        if not rows:
            return []
        return [self.functions.checked_total(rows) if self.op.kind == "reduce" else rows]


class Topping(All):
    def push(self, row: Any) -> list[Any]:
        self.functions.check(row)
        self.rows.append(row)
        due = self.op.ordered and len(self.rows) % self.op.step == 0
        return [self.top()] if due else []

    def top(self) -> list[Any]:
        return sorted(self.rows, key=number, reverse=True)[: self.op.size]

    def end(self) -> list[Any]:
        said = self.op.ordered and len(self.rows) % self.op.step == 0
        return [] if said else [self.top()]


class Distinguishing(All):
    def push(self, row: Any) -> list[Any]:
        value = self.functions.key(row)
        self.rows.append(value)
        return [row] if self.rows.count(value) == 1 else []


class User:
    def __init__(self, op: Op, time: Any) -> None:
        self.running = Running(op.functions)

    def push(self, row: Any) -> list[Any]:
        return self.running.receive(row) or []

    def mark(self, time: Any) -> list[Any]:
        return self.running.on_watermark(time)

    def end(self) -> list[Any]:
        return self.running.on_final()


class CountWindows(All):
    def __init__(self, op: Op, time: Any) -> None:
        super().__init__(op, time)
        self.closed = 0  # how many windows

    def push(self, row: Any) -> list[Any]:
        self.rows.append(row)
        start = self.closed * self.op.step
        if len(self.rows) < start + self.op.size:
            return []
        self.closed += 1
        return whole([self.window(start)])

    def end(self) -> list[Any]:
        return [self.window(start) for start in
                range(self.closed * self.op.step, len(self.rows), self.op.step)]  # fmt: skip

    def window(self, start: int) -> Window[Any] | Raised:
        rows = self.rows[start : start + self.op.size]
        return self.closed_window(start, start + len(rows), rows)


class Timed(All):
    """The base of windows by time. `time` is how far time has come, for a key."""

    def __init__(self, op: Op, time: Any) -> None:
        super().__init__(op, time)
        self.marked = time
        self.latest: Any = None

    def pushed(self, time: Any) -> list[Any]:
        """Close what a row closes, if rows are in order."""
        if not self.op.ordered or (self.time is not None and time <= self.time):
            return []
        self.time = self.latest = time
        return whole(self.close(lambda end: end <= time))

    def mark(self, time: Any) -> list[Any]:
        if self.marked is None or time > self.marked:
            self.marked = time
        if self.time is not None and time <= self.time:
            return []
        self.time = time
        return self.close(lambda end: end <= time)

    def end(self) -> list[Any]:
        return self.close(lambda end: True)

    def close(self, closes: Callable[[int], bool]) -> list[Any]:
        raise NotImplementedError

    def idle(self) -> bool:
        """Whether nothing is open, and the watermarks say all about time that the rows did."""
        said = self.latest is None or (self.marked is not None and self.marked >= self.latest)
        return said and not self.rows


class TimeWindows(Timed):
    """Keeps (start, row) for each window that a row is in."""

    def push(self, row: Any) -> list[Any]:
        time = self.functions.time(row)
        outs = self.pushed(time)
        size, step = self.op.size, self.op.step
        starts = [n for n in range(-200, 200) if n % step == 0 and n <= time < n + size]
        if self.op.late != "include" and self.time is not None:
            in_time = [start for start in starts if start + size > self.time]
            if starts and not in_time:
                return [*outs, Late(row)]
            starts = in_time
        self.rows += [(start, row) for start in starts]
        return outs

    def close(self, closes: Callable[[int], bool]) -> list[Any]:
        outs = []
        size = self.op.size
        for start in sorted({start for start, _ in self.rows if closes(start + size)}):
            rows = [row for of, row in self.rows if of == start]
            outs.append(self.closed_window(start, start + size, rows))
        self.rows = [(start, row) for start, row in self.rows if not closes(start + size)]
        return outs


class SessionWindows(Timed):
    """Keeps the rows of open sessions with their times, and finds the sessions anew."""

    def push(self, row: Any) -> list[Any]:
        time = self.functions.time(row)
        outs = self.pushed(time)
        gap = self.op.size
        joins = any(abs(time - other) < gap for other, _ in self.rows)
        late = self.time is not None and time + gap <= self.time
        if late and not joins and self.op.late != "include":
            return [*outs, Late(row)]
        self.rows.append((time, row))
        return outs

    def close(self, closes: Callable[[int], bool]) -> list[Any]:
        sessions: list[list[Any]] = []
        for entry in sorted(self.rows, key=lambda entry: entry[0]):
            if sessions and entry[0] - sessions[-1][-1][0] < self.op.size:
                sessions[-1].append(entry)
            else:
                sessions.append([entry])
        outs = []
        for session in sessions:
            end = session[-1][0] + self.op.size
            if closes(end):
                self.rows = [entry for entry in self.rows if entry not in session]
                rows = [row for _, row in session]
                outs.append(self.closed_window(session[0][0], end, rows))
        return outs


def windows(op: Op, time: Any) -> Any:
    kinds = {"count": CountWindows, "time": TimeWindows, "session": SessionWindows}
    return kinds[op.windows](op, time)


@dataclass(frozen=True)
class Kind:
    """How a method of streams is called, its model, and what random graphs may do with it."""

    arguments: Callable[[Op], tuple[Any, ...]]
    model: Callable[[Op, Any], Any]
    """Makes the model of a state, of an operator and how far time has come: see `model.py`."""
    options: Callable[[Op], dict[str, Any]] = lambda op: {}
    may_be_keyed: bool = False
    takes_errors: bool = True
    """Also without keys."""
    takes_releases_gil: bool = False


def _every_step(op: Op) -> dict[str, Any]:
    return {"every": op.step}


KINDS: dict[str, Kind] = {
    "map": Kind(
        lambda op: (op.functions.map_awaited if op.in_flight else op.functions.map,),
        lambda op, time: Each(lambda row: [op.functions.map(row)]),
        takes_releases_gil=True,
    ),
    "filter": Kind(
        lambda op: (op.functions.filter,),
        lambda op, time: Each(lambda row: [row] if op.functions.filter(row) else []),
        takes_releases_gil=True,
    ),
    "flat_map": Kind(
        lambda op: (op.functions.generate if op.generates else op.functions.flat_map,),
        lambda op, time: Each(op.functions.flat_map),
        takes_releases_gil=True,
    ),
    "stateless": Kind(
        lambda op: (Many, op.functions),
        lambda op, time: Each(op.functions.flat_map),
        takes_releases_gil=True,
    ),
    "sample": Kind(lambda op: (), Sampling, _every_step, takes_errors=False),
    "watermarks": Kind(
        lambda op: (op.functions.time,),
        Marking,
        lambda op: {"every": op.step, "delay_threshold": op.size},
    ),
    "scan": Kind(lambda op: (0, op.functions.add), Accumulating, may_be_keyed=True),
    "fold": Kind(lambda op: (0, op.functions.add), Accumulating, may_be_keyed=True),
    "count": Kind(lambda op: (), Counting, may_be_keyed=True, takes_errors=False),
    "reduce": Kind(
        lambda op: (op.functions.checked_total,),
        Listing,
        lambda op: {"every": op.size},
        may_be_keyed=True,
    ),
    "batch": Kind(lambda op: (op.size,), Listing, may_be_keyed=True, takes_errors=False),
    "top_k": Kind(
        lambda op: (op.size, op.functions.check),
        Topping,
        lambda op: _every_step(op) if op.ordered else {},
        may_be_keyed=True,
    ),
    "distinct": Kind(lambda op: (op.functions.key,), Distinguishing, may_be_keyed=True),
    "stateful": Kind(
        lambda op: (Running, op.functions), User, may_be_keyed=True, takes_releases_gil=True
    ),
    "window": Kind(
        lambda op: (op.spec(), op.functions.checked_total),
        windows,
        lambda op: {"late": op.late},
        may_be_keyed=True,
    ),
}
