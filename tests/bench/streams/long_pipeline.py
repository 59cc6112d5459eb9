"""A pipeline of native operators that each add 1 to a row, in batches or row by row.

`tbb` and `free_ports` of `peers` play the same. How fast depends on who runs which operator when.
"""

from typing import Any

from callboard.streams import Graph, entry
from natives import load
from savina.result import Result
from streams.playing import LOW_BITS
from streams.timing import timed

OPERATORS = load("streams")


def run(
    n: int, *, workers: int = 1, operators: int = 1_000, serial: bool = False, **options: Any
) -> Result:
    """Send n rows. Serial operators are declared stateful: one worker at a time is in one.

    Options are the run's; its own defaults hold for those that are not given.
    """
    rows = [i << LOW_BITS for i in range(n)]
    sum_of_all = sum(rows) + operators * n
    graph = adding(operators, serial=serial)
    seconds, got = timed(graph, [("rows", rows)], workers, **options)
    return Result(n * operators, seconds, got=got, want=[n, sum_of_all >> 1, True])


def adding(operators: int, *, serial: bool = False) -> Graph[list[int]]:
    """Make the graph, which gives how many rows came, half of their sum, and whether in order."""
    stream = entry("rows")
    for _ in range(operators):
        stream = stream.native(OPERATORS.SerialAddOne if serial else OPERATORS.AddOne)
    return stream.native(OPERATORS.InOrder).collect()
