"""Models of graphs by the simplest programs: row by row, and depth first.

A part has push(row) and final(), which answer outputs. A watermark is a row.
"""

from __future__ import annotations

from typing import Any

from callboard.streams import FailedRow, Watermark
from tests.streams.functions import Refused, number
from tests.streams.kinds import KINDS, Late, Op, Raised
from tests.streams.shapes import Chain, Fork, Mark


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
            self.states[key] = KINDS[self.op.kind].model(self.op, self.time)
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
