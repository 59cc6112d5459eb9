"""One operator in Python of a known cost, without keys and with them, on one worker and on more.

Its functions are made in a function, as most lambdas are, and read a variable of it. On a build
with an interpreter lock one worker runs all Python operators, so more show nothing.
"""

import gc
from collections.abc import Callable, Iterable
from typing import Any

from callboard.streams import Graph, entry
from savina.result import Result
from streams.timing import timed

KEYS = 256
TURNS = {"light": 0, "middling": 28, "heavy": 280}  # about 0.1, 2 and 20 us a call on CPython 3.13


def work(row: int, turns: int) -> int:
    if turns:
        for turn in range(turns):
            row = (row * 5 + turn) % 65_521
    return row


class Last:
    """The state of a key."""

    def __init__(self, turns: int) -> None:
        self.turns = turns
        self.rows = 0

    def receive(self, row: int) -> list[int]:
        self.rows += 1
        return [work(row, self.turns) + self.rows]


class Worker:
    """An object with a method that lanes call."""

    def __init__(self, turns: int) -> None:
        self.turns = turns

    def work(self, row: int) -> int:
        return work(row, self.turns)


def map_by(turns: int) -> Graph[Any]:
    return entry("rows", int).map(lambda row: work(row, turns)).collect()


def method_by(turns: int) -> Graph[Any]:
    return entry("rows", int).map(Worker(turns).work).collect()


def filter_by(turns: int) -> Graph[Any]:
    return entry("rows", int).filter(lambda row: work(row, turns) % 2).collect()


def flat_map_by(turns: int) -> Graph[Any]:
    return entry("rows", int).flat_map(lambda row: [work(row, turns)]).collect()


def stateful_by(turns: int) -> Graph[Any]:
    keyed = entry("rows", int).key_by(lambda row: row % KEYS)
    return keyed.stateful(Last, turns).collect()


def scan_by(turns: int) -> Graph[Any]:
    keyed = entry("rows", int).key_by(lambda row: row % KEYS)
    return keyed.scan(0, lambda total, row: total + work(row, turns)).collect()


def fold_by(turns: int) -> Graph[Any]:
    keyed = entry("rows", int).key_by(lambda row: row % KEYS)
    return keyed.fold(0, lambda total, row: total + work(row, turns)).collect()


def mapped(turns: int, rows: Iterable[int]) -> list[Any]:
    return [work(row, turns) for row in rows]


def filtered(turns: int, rows: Iterable[int]) -> list[Any]:
    return [row for row in rows if work(row, turns) % 2]


def counted(turns: int, rows: Iterable[int]) -> list[Any]:
    return [work(row, turns) + row // KEYS + 1 for row in rows]


def summed(turns: int, rows: Iterable[int]) -> list[Any]:
    sums = dict.fromkeys(range(KEYS), 0)
    given = []
    for row in rows:
        key = row % KEYS
        sums[key] += work(row, turns)
        given.append((key, sums[key]))
    return given


def totalled(turns: int, rows: Iterable[int]) -> list[Any]:
    return list(dict(summed(turns, rows)).items())


# The graph of an operator, and what it gives of all rows.
OPERATORS: dict[
    str, tuple[Callable[[int], Graph[Any]], Callable[[int, Iterable[int]], list[Any]]]
] = {
    "map": (map_by, mapped),
    "map by a method": (method_by, mapped),
    "filter": (filter_by, filtered),
    "flat_map": (flat_map_by, mapped),
    "keyed stateful": (stateful_by, counted),
    "keyed scan": (scan_by, summed),
    "keyed fold": (fold_by, totalled),
}


def run(n: int, *, operator: str = "map", cost: str = "light", workers: int = 1) -> Result:
    """Run one operator, without garbage collections.

    Those of CPython 3.13 without a lock stop all threads and look through all rows, as often as
    chance has it.
    """
    graph_by, plainly = OPERATORS[operator]
    rows = list(range(n))
    gc.disable()
    try:
        seconds, got = timed(graph_by(TURNS[cost]), [("rows", rows)], workers)
    finally:
        gc.enable()
    want = plainly(TURNS[cost], rows)
    return Result(n, seconds, got=hash(tuple(got)), want=hash(tuple(want)))
