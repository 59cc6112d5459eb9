"""Graphs as data, from which a graph and its model are made.

A shape is a chain of links. A link is an operator, or a fork: branches that are joined again. All
functions take any row whatever, so that every operator may follow every other.
"""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

from callboard.streams import (
    FailedRow,
    SessionWindow,
    SlidingWindow,
    Stream,
    TumblingWindow,
    Watermark,
)


def number(row: Any) -> int:
    """Make a small integer of any row, the same in every process."""
    if row is None:  # of a failure at the end
        return 0
    if isinstance(row, Watermark):
        return int(row.time)
    if isinstance(row, FailedRow):
        return number(row.row) + 1
    if isinstance(row, tuple | list):
        return sum((i + 1) * number(each) for i, each in enumerate(row)) % 1009
    if isinstance(row, str):
        return zlib.crc32(row.encode()) % 1009
    return int(row) % 1009


class Refused(Exception):
    """What the functions here raise."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refused) and self.args == other.args

    def __hash__(self) -> int:
        return hash(self.args)


@dataclass(frozen=True)
class Functions:
    """The functions of an operator: `n` varies them; those of rows divisible by `fails` raise."""

    n: int = 1
    fails: int = 0

    def check(self, row: Any) -> int:
        value = number(row)
        if self.fails and value % self.fails == 0:
            raise Refused(value)
        return value

    def map(self, row: Any) -> Any:
        return (self.check(row) * 3 + self.n) % 1009

    async def map_awaited(self, row: Any) -> Any:
        await asyncio.sleep(0)
        return self.map(row)

    def filter(self, row: Any) -> bool:
        return self.check(row) % (self.n + 1) != 0

    def flat_map(self, row: Any) -> list[Any]:
        value = self.check(row)
        return [value + i for i in range(value % (self.n + 1))]

    def generate(self, row: Any) -> Iterator[Any]:
        value = number(row)
        for i in range(value % (self.n + 1)):
            yield value + i
        self.check(row)  # after its outputs

    def add(self, total: int, row: Any) -> int:
        return (total + self.check(row)) % 1009

    def key(self, row: Any) -> int:
        return self.check(row) % (self.n + 1)

    def time(self, row: Any) -> int:
        return self.check(row) % 100

    def total(self, rows: list[Any]) -> tuple[int, int]:
        return len(rows), sum(map(number, rows))

    def checked_total(self, rows: list[Any]) -> tuple[int, int]:
        self.check(sum(map(number, rows)))
        return self.total(rows)


class Running:
    """A user's class: the total of a number of rows, what is left at the end, and watermarks."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        self.sum = self.count = 0

    def receive(self, row: Any) -> list[Any] | None:
        self.sum += self.functions.check(row)
        self.count += 1
        return [self.sum, "many"] if self.count % (self.functions.n + 1) == 0 else None

    def on_watermark(self, time: Any) -> list[Any]:
        self.functions.check(self.sum + time)
        return [("at", time, self.sum)]

    def on_final(self) -> list[Any]:
        self.functions.check(self.sum + self.count)
        return [("final", self.sum)]

    def snapshot(self) -> list[int]:
        return [self.sum, self.count]

    def restore(self, state: list[int]) -> None:
        self.sum, self.count = state


class Many:
    """A user's class without a state that takes rows one by one and in chunks."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions

    def receive(self, row: Any) -> list[Any]:
        return self.functions.flat_map(row)

    def receive_many(self, rows: list[Any]) -> list[Any]:
        return [out for row in rows for out in self.receive(row)]


@dataclass(frozen=True)
class Op:
    """An operator: `kind` is a method of a stream. With `key` it is keyed."""

    kind: str
    functions: Functions = Functions()
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


@dataclass(frozen=True)
class Kind:
    """How a method of streams is called, and what random graphs may do with it."""

    arguments: Callable[[Op], tuple[Any, ...]]
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
        takes_releases_gil=True,
    ),
    "filter": Kind(lambda op: (op.functions.filter,), takes_releases_gil=True),
    "flat_map": Kind(
        lambda op: (op.functions.generate if op.generates else op.functions.flat_map,),
        takes_releases_gil=True,
    ),
    "stateless": Kind(lambda op: (Many, op.functions), takes_releases_gil=True),
    "sample": Kind(lambda op: (), _every_step, takes_errors=False),
    "watermarks": Kind(
        lambda op: (op.functions.time,), lambda op: {"every": op.step, "delay_threshold": op.size}
    ),
    "scan": Kind(lambda op: (0, op.functions.add), may_be_keyed=True),
    "fold": Kind(lambda op: (0, op.functions.add), may_be_keyed=True),
    "count": Kind(lambda op: (), may_be_keyed=True, takes_errors=False),
    "reduce": Kind(
        lambda op: (op.functions.checked_total,), lambda op: {"every": op.size}, may_be_keyed=True
    ),
    "batch": Kind(lambda op: (op.size,), may_be_keyed=True, takes_errors=False),
    "top_k": Kind(
        lambda op: (op.size, op.functions.check),
        lambda op: _every_step(op) if op.ordered else {},
        may_be_keyed=True,
    ),
    "distinct": Kind(lambda op: (op.functions.key,), may_be_keyed=True),
    "stateful": Kind(
        lambda op: (Running, op.functions), may_be_keyed=True, takes_releases_gil=True
    ),
    "window": Kind(
        lambda op: (op.spec(), op.functions.checked_total),
        lambda op: {"late": op.late},
        may_be_keyed=True,
    ),
}


@dataclass(frozen=True)
class Fork:
    """Branches, each of which has all rows, or (`split`) those that come to it, joined again."""

    branches: tuple[Chain, ...]
    join: str = "union"
    split: bool = False

    def add_to(self, stream: Stream[Any]) -> Stream[Any]:
        """Add the branches and their join to a stream."""
        sources: tuple[Stream[Any], ...] = (stream,) * len(self.branches)
        if self.split:
            count = len(self.branches)
            tests = [goes_to(place, count) for place in range(count - 1)]
            sources = stream.branch(*tests)
        ends = [chain.add_to(source) for chain, source in zip(self.branches, sources, strict=True)]
        joined: Stream[Any] = getattr(ends[0], self.join)(*ends[1:])
        return joined


def goes_to(place: int, count: int) -> Any:
    """Make the test of a branch: rows by their number, those left to the last."""
    return lambda row: number(row) % count == place


@dataclass(frozen=True)
class Mark:
    """A threading model for what comes after it, or a threaded port; it changes no row."""

    model: str

    def add_to(self, stream: Stream[Any]) -> Stream[Any]:
        """Mark a stream."""
        if self.model == "threaded":
            return stream.new_thread()
        return stream.run_on(cast("Any", self.model))


@dataclass(frozen=True)
class Chain:
    """Links, one after the other."""

    links: tuple[Op | Fork | Mark, ...]

    def add_to(self, stream: Stream[Any]) -> Stream[Any]:
        """Add the links to a stream."""
        for link in self.links:
            stream = link.add_to(stream)
        return stream


def plain(row: Any) -> Any:
    """Make rows comparable: failures without their operators' names and serial numbers."""
    if isinstance(row, FailedRow):
        return "failure", plain(row.row), row.error
    if isinstance(row, tuple | list):
        return type(row)(map(plain, row)) if type(row) in {tuple, list} else [*map(plain, row)]
    return row
