"""One row at a time through an idle pipeline, Python's operators or native ones.

The value is the time for an operator in nanoseconds: the median row's, from when its first operator
begins until it has left the last. What it takes to wake a worker before is not in it, since that
is the same for 10 operators as for 10,000.
"""

from typing import Any

from callboard import ActorSystem
from callboard.streams import Graph, Stream, entry
from savina.result import Quantity

WINDOW = 1  # so that a row waits at the door until the one before it has left


def run(n: int, *, operators: int = 10, native: bool = False, **options: Any) -> Quantity:
    options = {"batch_size": 1, "markers": 1, "window": WINDOW, **options}
    with ActorSystem(workers=options.pop("workers", 1)) as system:
        run = system.run(adding(operators, native=native), **options)
        run.send("rows", range(n))
        got = run.finish()
        latency = run.statistics().processing
    assert latency is not None
    right = got == [row + operators for row in range(n)]
    return Quantity(1e9 * latency.median / operators, got=right, want=True)


def adding(operators: int, *, native: bool) -> Graph[list[int]]:
    return chained(operators, native=native).collect()


def chained(operators: int, *, native: bool) -> Stream[int]:
    stream = entry("rows", int)
    if native:
        from natives import load

        kind = load("streams").AddOne
        for _ in range(operators):
            stream = stream.native(kind)
    else:
        for _ in range(operators):
            stream = stream.map(add_one)
    return stream


def add_one(row: int) -> int:
    return row + 1
