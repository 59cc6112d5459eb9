"""Processing latency of a native pipeline at half of its capacity, in microseconds.

Rows are sent one by one, and each is a round with its own marker. First as fast as they go in,
which is the capacity; then at half that rate, evenly. A sender that was held up does not catch up,
or the load would be more for a while.
"""

from time import perf_counter, perf_counter_ns
from typing import Any

from callboard import ActorSystem
from callboard.streams import Graph, entry
from callboard.streams.running.statistics import RunStatistics
from savina.result import Quantity
from streams.playing import OPERATORS, scattered


def run(
    n: int,
    *,
    workers: int = 1,
    ns: int = 1000,
    operators: int = 5,
    measure: str = "median",
    load: float = 0.5,
    **options: Any,
) -> Quantity:
    rows = scattered(n)
    want = graph(operators, 0).run_sequentially({"rows": rows})
    options = {"batch_size": 1, "markers": 1, **options}
    with ActorSystem(workers=workers) as system:
        seconds, _, _ = send(system, graph(operators, ns), rows, 0, options)
        every = int(seconds / n * 1e9 / load)
        _, got, statistics = send(system, graph(operators, ns), rows, every, options)
    latency = statistics.processing
    assert latency is not None
    value = every if measure == "interval" else 1e6 * getattr(latency, measure)
    return Quantity(value, got=got, want=want)


def graph(operators: int, ns: int) -> Graph[list[int]]:
    stream = entry("rows")
    for _ in range(operators):
        stream = stream.native(OPERATORS.Parametric, ns)
    return stream.native(OPERATORS.InOrder).collect()


def send(
    system: ActorSystem,
    graph: Graph[list[int]],
    rows: list[int],
    every: int,
    options: dict[str, Any],
) -> tuple[float, list[int], RunStatistics]:
    """Send a row each `every` ns; return the seconds, what came out, and the statistics."""
    run = system.run(graph, **options)
    begin = perf_counter()
    if every:
        sent = 0
        for row in rows:
            while perf_counter_ns() < sent + every:
                pass
            sent = perf_counter_ns()
            run.send("rows", [row])
    else:
        run.send("rows", rows)
    got = run.finish()
    return perf_counter() - begin, got, run.statistics()
