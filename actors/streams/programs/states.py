"""States of the shipped operators that need nothing a user's class could not have.

Each is what `stateful()` takes: an object for each key, or one alone, with `receive` and what else
it needs of `on_watermark` and `on_final`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from typing import Any

from callboard.streams.checks import check_value


class Reduction:
    """A function of each `every` rows, and of those left at the end."""

    def __init__(self, function: Callable[[list[Any]], Any], every: int) -> None:
        self.function, self.every = function, every
        self.rows: list[Any] = []

    def receive(self, row: Any) -> Sequence[Any] | None:
        self.rows.append(row)
        return self.on_final() if len(self.rows) == self.every else None

    def on_final(self) -> Sequence[Any]:
        rows, self.rows = self.rows, []
        return [self.function(rows)] if rows else ()


class Top:
    """The `k` rows for which `by` is largest; of equal ones the earlier.

    At the end they are not said again if no row has come since they were.
    """

    def __init__(self, k: int, by: Callable[[Any], Any], every: int | None) -> None:
        self.k, self.by, self.every = k, by, every
        self.count = 0
        self.heap: list[tuple[Any, int, Any]] = []  # the one to go next is at its root

    def receive(self, row: Any) -> Sequence[Any] | None:
        value = self.by(row)
        check_value("what top_k() goes by", value)
        entry = (value, -self.count, row)
        if len(self.heap) < self.k:
            heapq.heappush(self.heap, entry)
        else:
            heapq.heappushpop(self.heap, entry)
        self.count += 1
        return [self.rows()] if self.every and self.count % self.every == 0 else None

    def on_final(self) -> Sequence[Any]:
        return () if self.every and self.count % self.every == 0 else [self.rows()]

    def rows(self) -> list[Any]:
        return [row for _, _, row in sorted(self.heap, reverse=True)]


class Distinct:
    """The first of all rows that are equal, or whose `by` is."""

    def __init__(self, by: Callable[[Any], Any] | None) -> None:
        self.by = by
        self.seen: set[Any] = set()

    def receive(self, row: Any) -> Sequence[Any] | None:
        value = row if self.by is None else self.by(row)
        if value in self.seen:
            return None
        check_value("what distinct() goes by", value)
        self.seen.add(value)
        return [row]
