"""The stateful operators of the five queries: one object for each key, or one for all.

An object is handed its rows in the order of the stream, and returns what it has to emit; `on_final`
comes at the end of the stream. What the rows are says `sequential.py`, and what the answers are.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from typing import Any

from tpcxbb.sequential import (
    HOUR,
    Abandoned,
    HourlyPair,
    Pair,
    Trend,
    Viewed,
    fit,
    most,
)

HourPair = tuple[int, tuple[Any, Any]]


class Baskets:
    """Of one customer: pair an item with those that are in the basket already."""

    def __init__(self, largest: int | None) -> None:
        self.largest = largest
        self.basket: object = None
        self.items: set[Any] = set()

    def receive(self, line: tuple[int, Any, Any, Any]) -> Iterable[HourPair] | None:
        time, _, basket, item = line
        if basket != self.basket:
            self.basket = basket
            self.items = {item}
            return None
        if item in self.items or len(self.items) == self.largest:
            return None
        hour = time // HOUR
        pairs = [(hour, (item, other) if item < other else (other, item)) for other in self.items]
        self.items.add(item)
        return pairs


class HourlyCounts:
    """Of some of the pairs: count each within its hour, and forget it with the hour."""

    def __init__(self) -> None:
        self.hour = 0
        self.counts: Counter[tuple[Any, Any]] = Counter()

    def receive(self, sold: HourPair) -> Iterable[tuple[int, tuple[Any, Any], int]]:
        hour, pair = sold
        if hour != self.hour:
            self.hour = hour
            self.counts.clear()
        self.counts[pair] += 1
        return ((hour, pair, self.counts[pair]),)


class HourlyTop:
    """Keep the latest counts of this hour, and emit the largest when the next hour begins."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.hour = 0
        self.counts: dict[tuple[Any, Any], int] = {}

    def receive(self, counted: tuple[int, tuple[Any, Any], int]) -> Iterable[HourlyPair] | None:
        hour, pair, count = counted
        ended = None
        if hour != self.hour:
            ended = self.on_final()
            self.hour = hour
            self.counts = {}
        self.counts[pair] = count
        return ended

    def on_final(self) -> Iterable[HourlyPair]:
        ranked = most(self.counts, self.top)
        return [HourlyPair(self.hour, first, second, count) for (first, second), count in ranked]


class Sessions:
    """Of one user: emit the events of each session as one list."""

    def __init__(self, gap: int = HOUR) -> None:
        self.gap = gap
        self.events: list[tuple[Any, ...]] = []

    def receive(self, event: tuple[Any, ...]) -> Iterable[list[tuple[Any, ...]]] | None:
        events = self.events
        if events and event[0] - events[-1][0] > self.gap:
            self.events = [event]
            return (events,)
        events.append(event)
        return None

    def on_final(self) -> Iterable[list[tuple[Any, ...]]]:
        return (self.events,)


class Top:
    """Emit the pairs with the largest counts at the end, and hold no others meanwhile.

    A count only grows, and each growth is seen here, so a pair that has dropped out comes back in
    time. `worst` is the pair to drop out next, behind the negative of its count; None if not known.
    """

    def __init__(self, top: int) -> None:
        self.top = top
        self.counts: dict[tuple[Any, Any], int] = {}
        self.worst: tuple[int, tuple[Any, Any]] | None = None

    def receive(self, counted: tuple[tuple[Any, Any], int]) -> Iterable[Pair] | None:
        pair, count = counted
        if pair in self.counts:
            if self.worst and self.worst[1] == pair:
                self.worst = None
        elif len(self.counts) == self.top:
            if self.worst is None:
                self.worst = max((-held, of) for of, held in self.counts.items())
            if self.worst < (-count, pair):
                return None
            del self.counts[self.worst[1]]
            self.worst = None
        self.counts[pair] = count
        return None

    def on_final(self) -> Iterable[Pair]:
        ranked = most(self.counts, self.top)
        return [Pair(first, second, count) for (first, second), count in ranked]


class Recent:
    """Of one user: remember the last views, and emit (bought, viewed) at a purchase."""

    def __init__(self, last: int, within: int) -> None:
        self.within = within
        self.views: deque[tuple[int, Any]] = deque(maxlen=last)

    def receive(self, event: tuple[int, Any, Any, bool]) -> Iterable[tuple[Any, Any]] | None:
        time, _, item, bought = event
        pairs = None
        if bought:
            since = time - self.within
            pairs = [(item, viewed) for at, viewed in self.views if at >= since and viewed != item]
        self.views.append((time, item))
        return pairs


class Views:
    """Of one item that is bought: count the items viewed before."""

    def __init__(self, top: int) -> None:
        self.top = top
        self.bought: object = None
        self.counts: Counter[Any] = Counter()

    def receive(self, pair: tuple[Any, Any]) -> Iterable[Viewed] | None:
        self.bought, viewed = pair
        self.counts[viewed] += 1
        return None

    def on_final(self) -> Iterable[Viewed]:
        return [Viewed(self.bought, *counted) for counted in most(self.counts, self.top)]


class Average:
    """Count sessions and their pages; the answer to query 4."""

    def __init__(self) -> None:
        self.sessions = self.pages = 0

    def receive(self, pages: int) -> Iterable[Abandoned] | None:
        self.sessions += 1
        self.pages += pages
        return None

    def on_final(self) -> Iterable[Abandoned]:
        average = self.pages / self.sessions if self.sessions else None
        return (Abandoned(self.sessions, self.pages, average),)


class Line:
    """Of one group: sum each day; at the end emit the slope of the sums if it is not above 0."""

    def __init__(self) -> None:
        self.group: object = None
        self.sums: Counter[int] = Counter()

    def receive(self, amount: tuple[int, Any, int]) -> Iterable[Trend] | None:
        day, self.group, value = amount
        self.sums[day] += value
        return None

    def on_final(self) -> Iterable[Trend] | None:
        slope = fit(self.sums)
        return None if slope is None or slope > 0 else (Trend(self.group, slope),)
