"""The time to define and to start a graph of many operators, in microseconds for an operator.

`phase` is "define", which makes the graph; "start", which makes a run of it; or "end", which sends
a row through and waits until the run has ended.
"""

from time import perf_counter
from typing import Any

from callboard import ActorSystem
from savina.result import Quantity
from streams.one_row import adding


def run(n: int, *, phase: str = "start", native: bool = False, **options: Any) -> Quantity:
    begin = perf_counter()
    graph = adding(n, native=native)
    defined = perf_counter()
    with ActorSystem(workers=options.pop("workers", 1)) as system:
        before = perf_counter()
        run = system.run(graph, **options)
        started = perf_counter()
        run.send("rows", [0])
        got = run.finish()
        ended = perf_counter()
    seconds = {"define": defined - begin, "start": started - before, "end": ended - started}
    return Quantity(1e6 * seconds[phase] / n, got=got, want=[n])
