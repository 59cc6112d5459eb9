"""A graph that counts the rows of each key, and the statistics of that operator."""

from __future__ import annotations

from typing import Any

from callboard.streams import Graph, Run, entry
from callboard.streams.running.statistics import OperatorStatistics


class Counter:
    """A user's class, whose objects give the row and how many of its key have come."""

    def __init__(self) -> None:
        self.count = 0

    def receive(self, row: Any) -> list[tuple[Any, int]]:
        self.count += 1
        return [(row, self.count)]


def counted(partition: Any, *, releases_gil: bool = True, **options: Any) -> Graph[Any]:
    """Make a graph that counts rows by their value. Workers share it, also beside a GIL."""
    keyed = entry("rows").key_by(lambda row: row, partition=partition, **options)
    return Graph(keyed.stateful(Counter, name="count", releases_gil=releases_gil).collect())


def statistics_of(run: Run[Any]) -> OperatorStatistics:
    """Return those of the operator itself, which come after those of what divides its rows."""
    return [each for each in run.statistics().operators if each.name == "count"][-1]


def rows_of_partitions(run: Run[Any]) -> tuple[int, ...]:
    """Return how many rows came to each."""
    return tuple(partition.rows for partition in statistics_of(run).partitions)
