"""Nexmark's queries in Bytewax: on Python rows, and on Arrow batches where no join is needed.

States are written by hand, for one key each where there is no other: in the newest release that can
be installed, its own windows and joins are many times slower.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterable
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.operators import KeyedStream, StatefulLogic
from bytewax.testing import TestingSink, TestingSource, run_main

from nexmark import batches
from nexmark.oracle import PANES, STEP, WINDOW, Clock
from nexmark.rows import (
    Auction,
    Bid,
    Person,
    Row,
    highest,
    in_euros,
    is_of_category,
    is_wanted,
    lives_near,
    offered,
    passed,
    suggested,
)


class Suggestions:
    """The persons of one id, and the auctions of that seller."""

    def __init__(self) -> None:
        self.persons: list[Person] = []
        self.auctions: list[Auction] = []

    def receive(self, row: Person | Auction) -> list[Row]:
        if isinstance(row, Person):
            self.persons.append(row)
            return [suggested(row, auction) for auction in self.auctions]
        self.auctions.append(row)
        return [suggested(person, row) for person in self.persons]


class Highest:
    """One auction: its category and the highest price, at the end."""

    def __init__(self) -> None:
        self.auction: Auction | None = None
        self.price = 0

    def receive(self, row: Auction | Bid) -> None:
        if isinstance(row, Auction):
            self.auction = row
        elif self.auction and row.time <= self.auction.expires and row.price > self.price:
            self.price = row.price

    def on_final(self) -> list[Row]:
        return [(self.auction.category, self.price)] if self.auction and self.price else []


class Average:
    def __init__(self) -> None:
        self.sum = self.count = self.category = 0

    def receive(self, row: Row) -> None:
        self.category = row[0]
        self.sum += row[1]
        self.count += 1

    def on_final(self) -> list[Row]:
        return [(self.category, self.sum / self.count)]


class Hottest:
    """The bids of each pane by auction, and the windows of so many panes."""

    def __init__(self) -> None:
        self.pane: int | None = None
        self.counts: Counter[int] = Counter()
        self.panes: deque[tuple[int, Counter[int]]] = deque()

    def receive(self, bid: Bid) -> list[Row] | None:
        pane = bid.time // STEP
        found = None
        if pane != self.pane:
            if self.pane is not None:
                found = self.close(min(pane, self.pane + PANES))
            self.pane, self.counts = pane, Counter()
        self.counts[bid.auction] += 1
        return found

    def on_final(self) -> list[Row]:
        return [] if self.pane is None else self.close(self.pane + PANES)

    def close(self, until: int) -> list[Row]:
        assert self.pane is not None
        self.panes.append((self.pane, self.counts))
        found: list[Row] = []
        for last in range(self.pane, until):
            first = last + 1 - PANES
            while self.panes[0][0] < first:
                self.panes.popleft()
            counts: Counter[int] = Counter()
            for _, each in self.panes:
                counts.update(each)
            most = max(counts.values())
            found += [(first * STEP, auction, n) for auction, n in counts.items() if n == most]
        return found


class HighestInWindow:
    def __init__(self) -> None:
        self.window = 0
        self.bids: list[Bid] = []

    def receive(self, bid: Bid) -> list[Row] | None:
        window = bid.time // WINDOW
        found = None
        if window != self.window:
            found = self.on_final()
            self.window, self.bids = window, []
        self.bids.append(bid)
        return found

    def on_final(self) -> list[Row]:
        return [(self.window * WINDOW, *row) for row in highest(self.bids)] if self.bids else []


class NewUsers:
    """A person, and the latest window in which that seller has an auction."""

    def __init__(self) -> None:
        self.person: Person | None = None
        self.window = -1

    def receive(self, row: Person | Auction) -> list[Row] | None:
        if isinstance(row, Person):
            self.person = row
        else:
            self.window = row.start
        person = self.person
        if person is None or person.start != self.window:
            return None
        self.person = None
        return [(person.id, person.name, person.start)]


class Kept(StatefulLogic[Any, Any, Any]):
    """Calls a state's `receive`, and at the end its `on_final`."""

    def __init__(self, state: Any) -> None:
        self.state = state

    def on_item(self, value: Any) -> tuple[Iterable[Any], bool]:
        return self.state.receive(value) or (), self.RETAIN

    def on_eof(self) -> tuple[Iterable[Any], bool]:
        final = getattr(self.state, "on_final", None)
        return final() if final else (), self.RETAIN

    def snapshot(self) -> None:
        return None


def kept(name: str, up: KeyedStream[Any], state: Callable[[], Any]) -> KeyedStream[Any]:
    return op.stateful(name, up, lambda _: Kept(state()))


def alone(name: str, up: Any, state: Callable[[], Any]) -> KeyedStream[Any]:
    return kept(name, op.key_on(f"key {name}", up, lambda _: "all"), state)


# --- the flows ------------------------------------------------------------------------------------


def q2(up: Any) -> Any:
    return op.map("offered", op.filter("is_wanted", up, is_wanted), offered)


def key_of(row: Person | Auction) -> str:
    return str(row.id if isinstance(row, Person) else row.seller)


def q3(up: Any) -> Any:
    some = op.filter(
        "some", up, lambda row: (lives_near if isinstance(row, Person) else is_of_category)(row)
    )
    return kept("suggested", op.key_on("key", some, key_of), Suggestions)


def auction_of(row: Auction | Bid) -> str:
    return str(row.id if isinstance(row, Auction) else row.auction)


def q4(up: Any) -> Any:
    closed = kept("highest", op.key_on("auction", up, auction_of), Highest)
    rows = op.key_on("category", op.key_rm("sold", closed), lambda row: str(row[0]))
    return kept("average", rows, Average)


FLOWS: dict[str, Callable[[Any], Any]] = {
    "q0": lambda up: op.map("passed", up, passed),
    "q1": lambda up: op.map("in_euros", up, in_euros),
    "q2": q2,
    "q3": q3,
    "q4": q4,
    "q5": lambda up: alone("hottest", up, Hottest),
    "q7": lambda up: alone("highest", up, HighestInWindow),
    "q8": lambda up: kept("new", op.key_on("key", up, key_of), NewUsers),
}
ON_BATCHES: dict[str, Callable[[Any], Any]] = {
    "q0": lambda up: op.map("passed", up, batches.passed),
    "q1": lambda up: op.map("in_euros", up, batches.in_euros),
    "q2": lambda up: op.map("wanted", up, batches.wanted),
    "q5": lambda up: alone("hottest", up, batches.Hottest),
    "q7": lambda up: alone("highest", up, batches.Highest),
}
KEYED = ("q3", "q4", "q5", "q7", "q8")


def play(
    flows: dict[str, Callable[[Any], Any]], query: str, rows: list[Any], batch_size: int
) -> tuple[float, list[Any]]:
    flow = Dataflow("nexmark")
    out: list[Any] = []
    down = flows[query](op.input("rows", flow, TestingSource(rows, batch_size)))
    op.output("out", down, TestingSink(out))
    clock = Clock()
    run_main(flow)
    seconds = clock.seconds()
    return seconds, [each for _, each in out] if query in KEYED else out
