"""Models of operators by the simplest programs: row by row, and depth first.

A part has push(row) and final(), which answer outputs. A watermark is a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from callboard.streams import FailedRow, Watermark, Window
from tests.streams.shapes import Chain, Fork, Functions, Mark, Op, Refused, Running, number


def model_of(link: Chain | Fork | Op) -> Any:
    """Make the model of a part of a shape."""
    if isinstance(link, Chain):
        return ChainModel([model_of(each) for each in link.links if not isinstance(each, Mark)])
    if isinstance(link, Fork):
        return ForkModel(link)
    return OpModel(link)


class ChainModel:
    def __init__(self, parts: list[Any]) -> None:
        self.parts = parts

    def push(self, row: Any, begin: int = 0) -> list[Any]:
        rows = [row]
        for part in self.parts[begin:]:
            rows = [out for each in rows for out in part.push(each)]
        return rows

    def final(self) -> list[Any]:
        rows = []
        for place, part in enumerate(self.parts):
            rows += [out for row in part.final() for out in self.push(row, place + 1)]
        return rows


class ForkModel:
    def __init__(self, fork: Fork) -> None:
        self.fork = fork
        self.branches = [model_of(chain) for chain in fork.branches]
        self.join = Join(fork.join, len(self.branches))

    def push(self, row: Any) -> list[Any]:
        count = len(self.branches)
        chosen = list(range(count))
        if self.fork.split and not isinstance(row, Watermark):
            chosen = [number(row) % count]
        outs = [(place, out) for place in chosen for out in self.branches[place].push(row)]
        return [out for place, each in outs for out in self.join.push(place, each)]

    def final(self) -> list[Any]:
        outs = []
        for place, branch in enumerate(self.branches):
            outs += [out for each in branch.final() for out in self.join.push(place, each)]
        return outs


class Join:
    def __init__(self, kind: str, count: int) -> None:
        self.kind = kind
        self.times: list[Any] = [None] * count
        self.reached: Any = None
        self.queues: list[list[Any]] = [[] for _ in range(count)]

    def push(self, place: int, row: Any) -> list[Any]:
        if isinstance(row, Watermark):
            old = self.times[place]
            self.times[place] = row.time if old is None else max(old, row.time)
            if None in self.times or (self.reached is not None and min(self.times) <= self.reached):
                return []
            self.reached = min(self.times)
            return [Watermark(self.reached)]
        if self.kind == "union":
            return [row]
        self.queues[place].append(row)
        return [tuple(queue.pop(0) for queue in self.queues)] if all(self.queues) else []


class OpModel:
    """An operator with its keys, and with what becomes of rows at which it raises."""

    def __init__(self, op: Op) -> None:
        self.op = op
        self.states: dict[Any, Any] = {}
        self.time: Any = None
        self.paired = op.key is not None and op.kind not in {"stateful", "distinct"}
        self.join = Join("union", 1 + (op.errors == "side") + (op.late == "side"))
        if op.key is None:
            self.state(None)

    def state(self, key: Any) -> Any:
        if key not in self.states:
            self.states[key] = STATES[self.op.kind](self.op, self.time)
        return self.states[key]

    def push(self, row: Any) -> list[Any]:
        if isinstance(row, Watermark):
            if self.time is None or row.time > self.time:
                self.time = row.time
            outs = self.ask("mark", row, row.time)
            self.forget(list(self.states))
            outputs = range(len(self.join.times))
            marks = [out for place in outputs for out in self.join.push(place, row)]
            return [*outs, *marks] if len(outputs) > 1 else [*outs, row]
        key, known = None, set(self.states)
        try:
            key = None if self.op.key is None else self.op.key.key(row)
            outs = self.named(key, self.state(key).push(row))
            if len(self.join.times) == 1:
                return outs
            return [each for out in outs for each in self.join.push(0, out)]
        except Exception as error:
            if key not in known:
                self.states.pop(key, None)
            return self.failed(row, error)
        finally:
            self.forget([key])

    def forget(self, keys: list[Any]) -> None:
        """Keys without open windows are forgotten."""
        for key in keys:
            if key is not None and getattr(self.states.get(key), "idle", bool)():
                del self.states[key]

    def final(self) -> list[Any]:
        return self.ask("end", None)

    def ask(self, method: str, row: Any, *arguments: Any) -> list[Any]:
        """Ask all states; outputs before failures, branch by branch."""
        outs: list[Any] = []
        failures: list[Any] = []
        for key, state in self.states.items():
            if hasattr(state, method):
                try:
                    for out in getattr(state, method)(*arguments):
                        if isinstance(out, Raised):
                            failures += self.failed(row, out.error)
                        else:
                            outs += self.named(key, [out])
                except Refused as error:
                    failures += self.failed(row, error)
        return outs + failures

    def named(self, key: Any, outs: list[Any]) -> list[Any]:
        outs = [out for out in outs if not (isinstance(out, Late) and self.op.late != "side")]
        named = [(key, out) if self.paired and not isinstance(out, Late) else out for out in outs]
        return [out.row if isinstance(out, Late) else out for out in named]

    def failed(self, row: Any, error: Exception) -> list[Any]:
        if self.op.errors == "fail":
            raise error
        return [FailedRow("", 0, row, error)] if self.op.errors == "side" else []


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


STATES: dict[str, Callable[[Op, Any], Any]] = {
    "map": lambda op, time: Each(lambda row: [op.functions.map(row)]),
    "filter": lambda op, time: Each(lambda row: [row] if op.functions.filter(row) else []),
    "flat_map": lambda op, time: Each(op.functions.flat_map),
    "stateless": lambda op, time: Each(op.functions.flat_map),
    "sample": Sampling,
    "watermarks": Marking,
    "scan": Accumulating,
    "fold": Accumulating,
    "count": Counting,
    "reduce": Listing,
    "batch": Listing,
    "top_k": Topping,
    "distinct": Distinguishing,
    "stateful": User,
    "window": windows,
}
