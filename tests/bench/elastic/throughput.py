"""1,000 operators that are fed as fast as can be: rows at the sink in the last periods.

One thread sends, and looks how far the graph is. The level is fixed, or found by a strategy.
"""

from time import perf_counter
from typing import Any

from elastic.graphs import Shape, outcome
from elastic.levels import settling, system_of
from savina.result import Result
from usage import Watch

LAST = 5  # periods, as in the paper
WINDOW = 32  # rounds: a long one would take seconds to empty


def run(
    n: int,
    *,
    shape: str = "pipeline",
    flops: int = 1,
    operators: int = 1_000,
    workers: int = 1,
    least: int = 1,
    strategy: str = "",
    period: float = 0.2,
    **options: Any,
) -> Result:
    """Feed a graph for n periods. Options are the run's."""
    graph = Shape(shape, flops, operators)
    options = {"batch_size": graph.rows, "window": WINDOW, **options}
    sent = 0
    made = perf_counter()
    with system_of(workers, strategy, period, least) as system:
        run = system.run(graph.graph(), **options)
        begin = perf_counter()
        last, end = begin + max(0, n - LAST) * period, begin + n * period
        watch, before = Watch(), 0
        looked = False
        for entry, rows in graph.rounds():
            now = perf_counter()
            if not looked and now >= last:
                looked, watch, before = True, Watch(), run.statistics().rounds_done
            if now >= end:
                break
            run.send(entry, rows)
            sent += len(rows)
        used, done = watch.stop(), run.statistics().rounds_done - before
        level = system.statistics().level if strategy else None
        found = settling(level, begin - made, period)
        got = run.finish(timeout=300)
    return Result(max(1, done) * graph.rows, got=got, want=outcome(sent), **used, **found)
