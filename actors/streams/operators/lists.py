"""Lists of a fixed number of rows, and the results of functions of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from callboard.streams.checks import check_count, check_function
from callboard.streams.operators.receivers import objects
from callboard.streams.planning.operator import Operator, label_of
from callboard.streams.programs.columns.rows_and_batches import batch_of
from callboard.streams.programs.program import Answering
from callboard.streams.programs.rows.keyed import Gather


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
    """A function of each `every` rows, and of those left at the end."""

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
