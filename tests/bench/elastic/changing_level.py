"""A change of level: how long the call takes, and how long until all suspended workers rest.

The level goes from 2 to 1 and back, n times, in the middle of work. A worker that is suspended
rests at the end of its dispatch, and its lanes with it.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from statistics import median, quantiles
from time import perf_counter, sleep, thread_time
from typing import Any

from callboard import ActorSystem
from elastic import actors
from elastic.graphs import Shape, outcome
from natives import load
from savina.result import Quantity

PATIENCE = 60.0  # seconds
LOOK = 20e-6  # seconds between two looks whether all rest
BETWEEN = 0.002  # seconds in which a resumed worker begins to work
QUANTILES: dict[str, Callable[[list[float]], float]] = {
    "median": median,
    "p99": lambda values: quantiles(values, n=100)[-1],
    "worst": max,
}


def run(n: int, *, beside: str = "graph", measure: str = "rest", quantile: str = "p99") -> Quantity:
    """Change the level n times; the value is in microseconds.

    `measure` is "call", "rest" (from the call until all rest), or "look": the processor time of a
    look of the controller, which measures, decides, and changes nothing.
    """
    busy = {"graph": busy_graph, "actors": busy_actors}[beside]
    config = {"elasticity": {"period": 1e6, "ceiling": 1.0}}  # this thread looks, and nobody else
    taken: list[float] = []
    outcomes: list[list[Any]] = []
    with ActorSystem(workers=(2, 2), config=config) as system, busy(system, outcomes):
        team = system._runtime.team
        controller: Any = team.controller
        for _ in range(n):
            sleep(BETWEEN)
            if measure == "look":
                begin = thread_time()
                controller.look()
                taken.append(thread_time() - begin)
                continue
            begin = perf_counter()
            team.set_level(1)
            called = perf_counter()
            while not team.workers[1].is_idle:
                if perf_counter() - begin > PATIENCE:
                    raise TimeoutError(f"{team.workers[1]} does not rest")
                sleep(LOOK)
            taken.append((called if measure == "call" else perf_counter()) - begin)
            begin = perf_counter()
            team.set_level(2)
            if measure == "call":
                taken.append(perf_counter() - begin)
    (outcome,) = outcomes
    return Quantity(1e6 * QUANTILES[quantile](taken), got=outcome[0], want=outcome[1])


@contextmanager
def busy_graph(system: ActorSystem, outcomes: list[list[Any]]) -> Iterator[None]:
    """Have a graph of 1,000 operators work for as long as the block lasts."""
    shape = Shape("mixed", 100)
    run = system.run(shape.graph(), batch_size=shape.rows, window=32)
    over, sent = threading.Event(), [0]

    def feed() -> None:
        for entry, rows in shape.rounds():
            if over.is_set():
                return
            run.send(entry, rows)
            sent[0] += len(rows)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        over.set()
        feeder.join()
        outcomes.append([run.finish(timeout=PATIENCE), outcome(sent[0])])


@contextmanager
def busy_actors(system: ActorSystem, outcomes: list[list[Any]]) -> Iterator[None]:
    """Have native actors compute for as long as the block lasts."""
    refs = [system.spawn(load("actors").Computing, 1_000) for _ in range(16)]
    for ref in refs:
        ref.tell(actors.AGAIN)
    try:
        yield
    finally:
        for ref in refs:
            ref.tell(actors.STOP)
        system.drain(PATIENCE)
        handled = actors.total(system, refs, actors.HANDLED)
        outcomes.append([handled, actors.total(system, refs, actors.SENT) + 2 * len(refs)])
