"""One row at a time from `send()` to the sink of an idle pipeline, by a threading model.

The value is the median row's time in microseconds, from the call of `send()` until that of the
sink's function. So what it takes to wake a thread is in it, where another than the sender's has to
run. The next row is sent when one has arrived.
"""

from queue import SimpleQueue
from statistics import median
from time import perf_counter_ns
from typing import Any

from callboard import ActorSystem
from hosts.base import TIMEOUT
from savina.result import Quantity
from streams.one_row import chained


def run(
    n: int, *, operators: int = 10, native: bool = False, workers: int = 1, **options: Any
) -> Quantity:
    arrived: SimpleQueue[tuple[int, int]] = SimpleQueue()

    def sink(row: int) -> None:
        arrived.put((row, perf_counter_ns()))

    got, times = [], []
    with ActorSystem(workers=workers) as system:
        graph = chained(operators, native=native).to(sink)
        with system.run(graph, **options) as run:
            for row in range(n):
                begin = perf_counter_ns()
                run.send("rows", [row])
                value, end = arrived.get(timeout=TIMEOUT)
                got.append(value)
                times.append(end - begin)
    return Quantity(median(times) / 1_000, got=got, want=[row + operators for row in range(n)])
