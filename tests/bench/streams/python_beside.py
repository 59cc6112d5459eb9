"""Two lanes in one function in Python: the rate of both against that of one.

A batch notes when it began and ended. So the time of a row while another lane was in a batch, too,
can be held against its time on one worker, whatever else the machine does meanwhile. Batches that
were interrupted are left out: they take longer than most, so a quarter of them says what is meant.
"""

import gc
from _thread import get_ident
from bisect import bisect
from collections.abc import Callable
from itertools import pairwise
from statistics import median, quantiles
from time import perf_counter_ns
from typing import Any

from callboard import ActorSystem
from callboard.core.threads.interpreter import has_gil
from callboard.streams import entry
from savina.result import Quantity
from streams.python_operators import TURNS, work

BATCH = 512
INSIDE = BATCH - 2  # row + 1 has none of these bits for the first and the last row of a batch
ENOUGH = 40  # batches beside another
SHARED = {1: 2}

Span = tuple[int, int]  # in nanoseconds


class Notes:
    """When each thread began and ended its batches: the first and the last row of one says so."""

    def __init__(self) -> None:
        self.times: dict[int, list[Span]] = {}

    def note(self, row: int) -> int:
        self.times.setdefault(get_ident(), []).append((row, perf_counter_ns()))
        return row

    def spans(self) -> list[list[Span]]:
        """Return the batches of each thread."""
        return [
            [(a, b) for (first, a), (last, b) in pairwise(each) if last == first + BATCH - 1]
            for each in self.times.values()
        ]


class Worker:
    def __init__(self, turns: int, note: Callable[[int], int]) -> None:
        self.turns = turns
        self.note = note

    def work(self, row: int) -> int:
        return work(row, self.turns) if (row + 1) & INSIDE else self.note(row)


def closure(turns: int, note: Callable[[int], int]) -> Callable[[int], int]:
    return lambda row: work(row, turns) if (row + 1) & INSIDE else note(row)


def method(turns: int, note: Callable[[int], int]) -> Callable[[int], int]:
    return Worker(turns, note).work


def closure_over_dict(turns: int, note: Callable[[int], int]) -> Callable[[int], int]:
    return lambda row: work(row, turns * len(SHARED)) if (row + 1) & INSIDE else note(row)


FUNCTIONS = {"closure": closure, "method": method, "closure and a dictionary": closure_over_dict}


def run(n: int, *, function: str = "closure", cost: str = "light") -> Quantity:
    if has_gil():  # two lanes are never in a function at a time
        raise ModuleNotFoundError(name="a free-threaded interpreter")
    gc.disable()
    alone: list[float] = []
    beside: list[float] = []
    got: list[Any] = []
    for _ in range(20):  # times at most
        for workers in (1, 2):
            notes = Notes()
            got = played(FUNCTIONS[function](TURNS[cost], notes.note), n, workers)
            spans = notes.spans()
            if workers == 1:
                alone += [end - begin for each in spans for begin, end in each]
            else:
                beside += beside_another(spans)
        if len(beside) >= ENOUGH:
            break
    if len(beside) < 2:
        raise RuntimeError("no two lanes were at work at a time")
    want = FUNCTIONS[function](TURNS[cost], lambda row: row)
    ratio = 2 * quantiles(alone)[0] / quantiles(beside)[0]
    return Quantity(ratio, got=hash(tuple(got)), want=hash(tuple(map(want, range(n)))))


def played(function: Callable[[int], int], n: int, workers: int) -> list[Any]:
    with ActorSystem(workers=workers) as system:
        run = system.run(entry("rows", int).map(function).collect(), batch_size=BATCH)
        run.send("rows", range(n))
        collected: list[Any] = run.finish()
        return collected


def beside_another(spans: list[list[Span]]) -> list[float]:
    """Return how long those batches took that lay within batches of another thread."""
    if len(spans) < 2:
        return []
    usual = median(end - begin for each in spans for begin, end in each)
    mine, others = sorted(spans, key=len)[-2:]
    found: list[float] = []
    for these, those in ((mine, others), (others, mine)):
        starts = [begin for begin, _ in those]
        for begin, end in these:
            near = those[max(0, bisect(starts, begin) - 1) : bisect(starts, end)]
            covered = sum(max(0, min(end, b) - max(begin, a)) for a, b in near)
            if covered > 0.8 * (end - begin) and all(b - a < 2.5 * usual for a, b in near):
                found.append(end - begin)
    return found
