"""A small graph with a sum in it, and rows to feed it."""

from __future__ import annotations

from typing import Any

from callboard.streams import Graph, Run, entry

ROWS = list(range(5000))


def feed(run: Run[Any], entry: str, rows: Any) -> Any:
    """Send rows, and finish."""
    run.send(entry, rows)
    return run.finish(timeout=60)


class Sum:
    def __init__(self) -> None:
        self.total = 0

    def receive(self, row: int) -> list[int]:
        self.total += row
        return [self.total]


def shape() -> Graph[Any]:
    return (
        entry("numbers", int)
        .map(lambda n: n + 1)
        .filter(lambda n: n % 3 != 0)
        .key_by(lambda n: n % 10, partitions=8)
        .stateful(Sum)
        .collect()
    )
