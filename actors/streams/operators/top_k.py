"""The largest rows."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from callboard.rows.instants import instant_of
from callboard.streams.checks import check_count, check_function
from callboard.streams.operators.receivers import objects
from callboard.streams.planning.operator import Operator
from callboard.streams.programs.program import Answering
from callboard.streams.programs.rows.tables import check_key


def top_k(k: int, by: Any, every: int | None) -> Operator:
    """Keep the largest rows."""
    check_count("k", k)
    check_function("top_k()'s second argument", by)
    if every is not None:
        check_count("every", every)
    return objects("top_k", partial(_Top, k, by, every), detail=f"{k:,} rows", marks_end=True)


class _Top:
    """The `k` rows for which `by` is largest; of equal ones the earlier.

    At the end they are given again only if rows have come since.
    """

    def __init__(self, k: int, by: Callable[[Any], Any], every: int | None) -> None:
        self.k, self.by, self.every = k, Answering(by), every
        self.count = 0
        self.heap: list[tuple[Any, int, Any]] = []  # the one to go next is at its root

    def receive(self, row: Any) -> Sequence[Any] | None:
        value = instant_of(self.by(row))
        check_key("what top_k() goes by", value)
        entry = (value, -self.count, row)
        if len(self.heap) < self.k:
            if self.heap:
                entry < self.heap[0]  # noqa: B015 - what raises is never in the heap
            heapq.heappush(self.heap, entry)
        else:
            heapq.heappushpop(self.heap, entry)
        self.count += 1
        return [self.rows()] if self.every and self.count % self.every == 0 else None

    def on_final(self) -> Sequence[Any]:
        return () if self.every and self.count % self.every == 0 else [self.rows()]

    def snapshot(self) -> Any:
        return [self.count, self.heap]

    def restore(self, state: Any) -> None:
        self.count, self.heap = state

    def rows(self) -> list[Any]:
        return [row for _, _, row in sorted(self.heap, reverse=True)]
