"""The interpreter's lock: predictions beside a pipeline of operators in Python.

With the lock one lane works on all of them, however many workers there are. So the lane contends
with the sender alone, and under `dedicated` the operators' threads do with each other.
"""

import statistics
from collections.abc import Callable, Mapping
from itertools import product
from time import thread_time_ns
from typing import Any

from callboard import ActorSystem
from callboard.core.threads.interpreter import has_gil
from callboard.streams import Graph, entry
from simulator.programs import simulated
from streams.python_operators import TURNS, work
from usage import Watch

OPERATORS = 10
ROWS = 512
WINDOW = 8
ROUNDS = {"light": 1_000, "middling": 64, "heavy": 24}
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {  # on real threads, and on simulated ones
    "1 worker": ({"workers": 1}, {"lanes": 1, "stages": "ordered"}),
    "2 workers": ({"workers": 2}, {"lanes": 1, "stages": "ordered"}),
    "`dedicated`": ({"workers": 1, "threading": "dedicated"}, {"model": "dedicated"}),
}
Function = Callable[[int], int]


def operator(cost: str) -> Function:
    turns = TURNS[cost]
    return lambda row: work(row, turns)


def quantiles(batch: Callable[[list[int]], object]) -> list[float]:
    """Measure the processor time of a batch of rows, in ns."""
    rows, taken = list(range(ROWS)), []
    for _ in range(101):
        begin = thread_time_ns()
        batch(rows)
        taken.append(thread_time_ns() - begin)
    return statistics.quantiles(taken, n=20)


def costs_of(function: Function) -> list[dict[str, Any]]:
    """Return what the simulator takes for the costs of a source and of an operator."""
    source = quantiles(lambda rows: rows[:])
    mapped = quantiles(lambda rows: list(map(function, rows)))
    return [{"flops": f, "rows": ROWS, "ns": ns} for f, ns in ((0, source), (1, mapped))]


def graph(function: Function) -> Graph[Any]:
    stream = entry("rows", int)
    for _ in range(OPERATORS):
        stream = stream.map(function)
    return stream.collect()


def played(function: Function, rounds: int, workers: int, **options: Any) -> dict[str, float]:
    """Run the operators on real threads, and return what a round takes."""
    rows, want = list(range(ROWS)), list(range(ROWS))
    for _ in range(OPERATORS):
        want = list(map(function, want))
    with ActorSystem(workers=workers) as system:
        run = system.run(graph(function), batch_size=ROWS, window=WINDOW, **options)
        watch = Watch()
        for _ in range(rounds):
            run.send("rows", rows)
        got = run.finish()
        taken = watch.stop()
    if got != want * rounds:
        raise RuntimeError("the operators gave other rows")
    return {key: taken[key] / rounds for key in ("seconds", "cpu")}


def validate(machine: Mapping[str, Any], rounds: int) -> None:
    """Print the microseconds of a round with operators of three costs."""
    print("| cost | | predicted | measured | error | of processors | measured | error |")
    print("|---" * 8, "|", sep="")
    for cost, (name, (real, model)) in product(ROUNDS, WAYS.items()):
        function = operator(cost)
        runs = [played(function, ROUNDS[cost], **real) for _ in range(max(1, rounds))]
        got = simulated(
            {**machine, "costs": costs_of(function)},
            **model,
            operators=OPERATORS,
            rows=ROWS,
            window=WINDOW,
            warm=2 * WINDOW,
            rounds=ROUNDS[cost],
            flops=1,
            lock=int(has_gil()),
        )
        cells = []
        for key in ("seconds", "cpu"):
            want = 1e6 * got[key] / got["rounds"]
            have = 1e6 * statistics.median(each[key] for each in runs)
            cells.append(f"{want:,.0f} | {have:,.0f} | {want / have - 1:+.0%}")
        print(f"| {cost} | {name} |", " | ".join(cells), "|", flush=True)
