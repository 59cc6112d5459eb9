"""The states of stateful operators, for all rows or for each key.

Windows are in `windowing.py`, and the objects of users' classes in `receivers.py`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Sequence
from copy import deepcopy
from functools import partial
from typing import Any

from callboard.core.text import safe_repr
from callboard.frequency.results import Frequent
from callboard.frequency.space_saving import SpaceSaving, restored
from callboard.rows.instants import instant_of
from callboard.streams.checks import check_count, check_function
from callboard.streams.errors import GraphError
from callboard.streams.operators.receivers import objects
from callboard.streams.planning.operator import Operator, label_of
from callboard.streams.programs.columns.rows_and_batches import batch_of
from callboard.streams.programs.program import Answering
from callboard.streams.programs.rows.keyed import Count, Gather, Scan
from callboard.streams.programs.rows.tables import check_key


def count() -> Operator:
    """Count rows."""
    return Operator(kind="count", program=Count, stateful=True)


def accumulator(kind: str, initial: Any, function: Any) -> Operator:
    """Accumulate, and give each accumulator ("scan") or the last one ("fold")."""
    check_function(f"{kind}()'s second argument", function)
    try:
        deepcopy(initial)
    except Exception as error:
        what = f"{kind}()'s first argument is copied for each run, and for each key, and"
        raise GraphError(f"{what} {safe_repr(initial)} cannot be: {error}") from error
    return Operator(
        kind=kind,
        program=partial(Scan, initial=initial, function=function, marks_end=kind == "fold"),
        label=label_of(function, kind),
        stateful=True,
    )


def reduce(function: Any, every: int) -> Operator:
    """Apply a function to lists of rows."""
    check_function("reduce()'s first argument", function)
    check_count("every", every)
    return _lists("reduce", function, every, label_of(function, "reduce"))


def batch(size: int) -> Operator:
    """Make lists of rows."""
    check_count("a batch's size", size)
    return _lists("batch", list, size)


def to_arrow(size: int, schema: Any) -> Operator:
    """Make Arrow batches of rows."""
    check_count("a batch's size", size)
    program = partial(Gather, function=batch_of(schema), size=size)
    return Operator(kind="to_arrow", program=program, detail=f"{size:,} rows", stateful=True)


def _lists(kind: str, function: Any, size: int, label: str = "") -> Operator:
    make = partial(_Reduction, function, size)
    return objects(kind, make, label=label, detail=f"{size:,} rows", marks_end=True)


class _Reduction:
    """A function of each `every` rows, and of the remaining ones at the end."""

    def __init__(self, function: Callable[[list[Any]], Any], every: int) -> None:
        self.function, self.every = Answering(function), every
        self.rows: list[Any] = []

    def receive(self, row: Any) -> Sequence[Any] | None:
        self.rows.append(row)
        return self.on_final() if len(self.rows) == self.every else None

    def on_final(self) -> Sequence[Any]:
        rows, self.rows = self.rows, []
        return [self.function(rows)] if rows else ()

    def snapshot(self) -> Any:
        return self.rows

    def restore(self, state: Any) -> None:
        self.rows = state


def distinct(by: Any) -> Operator:
    """Drop rows that were there before."""
    if by is not None:
        check_function("distinct()'s argument", by)
    return objects("distinct", partial(_Distinct, by), paired=False)


class _Distinct:
    """The first of the rows that are equal, or whose `by` is equal."""

    def __init__(self, by: Callable[[Any], Any] | None) -> None:
        self.by = None if by is None else Answering(by)
        self.seen: set[Any] = set()

    def receive(self, row: Any) -> Sequence[Any] | None:
        value = instant_of(row if self.by is None else self.by(row))
        if value in self.seen:
            return None
        check_key("what distinct() goes by", value)
        self.seen.add(value)
        return [row]

    def snapshot(self) -> Any:
        return tuple(self.seen)

    def restore(self, state: Any) -> None:
        self.seen = set(state)


def top_k(k: int, by: Any, every: int | None) -> Operator:
    """Keep the largest rows."""
    check_count("k", k)
    check_function("top_k()'s second argument", by)
    if every is not None:
        check_count("every", every)
    return objects("top_k", partial(_Top, k, by, every), detail=f"{k:,} rows", marks_end=True)


class _Top:
    """The `k` rows with the largest `by`; among equal ones the earlier.

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


def frequent(by: Any, epsilon: float, support: float | None, every: int | None) -> Operator:
    """Count keys in bounded memory."""
    check_function("frequent()'s first argument", by)
    if every is not None:
        check_count("every", every)
    try:
        summary = SpaceSaving(epsilon)
        support = summary.epsilon if support is None else float(support)
        summary.frequent(support)
    except (TypeError, ValueError) as error:
        raise GraphError(str(error)) from None
    make = partial(_Frequent, by, epsilon, support, every)
    return objects("frequent", make, detail=f"above {support:g}", marks_end=True)


class _Frequent:
    """The keys that are more than a fraction of all rows.

    At the end they are given again only if rows have come since.
    """

    BATCH = 256

    def __init__(
        self, by: Callable[[Any], Any], epsilon: float, support: float, every: int | None
    ) -> None:
        self.by, self.support, self.every = Answering(by), support, every
        self.count = 0
        self.summary = SpaceSaving(epsilon)
        self.waiting: list[Hashable] = []  # counted together, which is faster

    def receive(self, row: Any) -> Sequence[Frequent] | None:
        key = self.by(row)
        hash(key)
        check_key("what frequent() counts", key)
        self.waiting.append(key)
        self.count += 1
        if self.every and self.count % self.every == 0:
            return [self.frequent()]
        if len(self.waiting) == self.BATCH:
            self.add_waiting()
        return None

    def on_final(self) -> Sequence[Frequent]:
        return () if self.every and self.count % self.every == 0 else [self.frequent()]

    def frequent(self) -> Frequent:
        self.add_waiting()
        return self.summary.frequent(self.support)

    def add_waiting(self) -> None:
        waiting, self.waiting = self.waiting, []
        self.summary.update(waiting)

    def snapshot(self) -> Any:
        return [self.count, self.waiting, self.summary.__reduce__()[1][1:]]

    def restore(self, state: Any) -> None:
        self.count, self.waiting, summary = state
        if summary[0] != self.summary.epsilon:
            raise ValueError(f"its epsilon was {summary[0]}, and is {self.summary.epsilon}")
        self.summary = restored(SpaceSaving, *summary)
