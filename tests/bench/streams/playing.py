"""Runs of native operators: rows, a run, and its expected output."""

from collections.abc import Callable
from time import perf_counter
from typing import Any

from callboard import ActorSystem
from callboard.streams import Stream, entry
from natives import load
from savina.result import Quantity, Result

OPERATORS = load("streams")
LOW_BITS = 16
"""A row is its serial number, and below it so many bits that keys are made of."""

Build = Callable[[Stream[int], float], Stream[int]]
"""Adds operators to a stream; they take as long as they should, times the number."""


def scattered(n: int) -> list[int]:
    """Make n rows with keys that are evenly spread."""
    return [i << LOW_BITS | (i * 40503) & 0xFFFF for i in range(n)]


def play(
    build: Build, rows: list[int], *, workers: int, measure: str = "rate", **options: Any
) -> Result | Quantity:
    """Send the rows through a graph; `measure` is "rate", or "latency", the mean one in ms.

    What must come out is what the same graph gives by one thread, when its operators take no time.
    """
    want = graph(build, 0).run_sequentially({"rows": rows})
    with ActorSystem(workers=workers) as system:
        run = system.run(graph(build, 1), **options)
        begin = perf_counter()
        run.send("rows", rows)
        got = run.finish()
        seconds = perf_counter() - begin
        latency = run.statistics().processing
    if measure == "latency":
        return Quantity(1e3 * latency.mean if latency else 0.0, got=got, want=want)
    return Result(len(rows), seconds, got=got, want=want)


def graph(build: Build, cost: float) -> Any:
    return build(entry("rows"), cost).native(OPERATORS.InOrder).collect()
