"""The time until each of some processes has had its first row, in milliseconds.

callboard        a system with processes, and a graph
multiprocessing  a pool, with the start method "spawn"
interpreters     processes of Python that do nothing
"""

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable
from time import perf_counter

from callboard import ActorSystem
from callboard.streams import entry
from savina.result import Quantity


def run(_: int, *, by: str = "callboard", processes: int = 1) -> Quantity:
    milliseconds, rows = BY[by](processes)
    return Quantity(milliseconds, rows, processes)


def process_of(_: int) -> int:
    return os.getpid()


def since(begin: float) -> float:
    return (perf_counter() - begin) * 1_000


def by_callboard(processes: int) -> tuple[float, int]:
    begin = perf_counter()
    with ActorSystem(processes=processes) as system:
        graph = entry("rows", int).map(process_of).collect()
        used = [*system.run(graph, batch_size=1).results(range(processes))]
        return since(begin), len({*used})


def by_multiprocessing(processes: int) -> tuple[float, int]:
    begin = perf_counter()
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        used = pool.map(process_of, range(processes), chunksize=1)
        return since(begin), len(used)


def by_interpreters(processes: int) -> tuple[float, int]:
    begin = perf_counter()
    started = [subprocess.Popen([sys.executable, "-c", "pass"]) for _ in range(processes)]
    ended = [each.wait() for each in started]
    return since(begin), len(ended)


BY: dict[str, Callable[[int], tuple[float, int]]] = {
    "callboard": by_callboard,
    "multiprocessing": by_multiprocessing,
    "interpreters": by_interpreters,
}
