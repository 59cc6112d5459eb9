"""A load that changes: light, ten times that, and light again; or none.

Rows come at a rate, through operators that take a time, whatever the machine's speed is. A light
load is a seventh of what a worker can do; ten times that is more than one can, and less than two.
"""

from time import perf_counter, process_time, sleep
from typing import Any

from callboard.streams import Graph, entry
from elastic.graphs import OPERATORS, outcome
from elastic.levels import PHASES, system_of
from savina.result import Quantity
from streams.playing import LOW_BITS

OPERATORS_IN_A_ROW = 4
NS = 25_000  # a row at an operator
LIGHT = 1_400  # rows a second
TICK = 0.01  # seconds


def run(
    n: int, *, phase: str = "ten times", strategy: str = "rates", period: float = 0.2
) -> Quantity:
    """Play all phases, each for n periods; the value is after how many periods of one its level
    was found, or n if it was not; or, of the phase "idle", the percentage of a processor used.
    """
    sent, found = 0, dict.fromkeys(PHASES, float(n))
    with system_of(2, strategy, period) as system:
        run = system.run(costly(), batch_size=10, window=1_024)
        began = perf_counter()
        if phase == "idle":
            return Quantity(idle(n * period), got=run.finish(timeout=60), want=outcome(0))
        for name, times in PHASES.items():
            begin = perf_counter()
            sent += feed(run, sent, times * LIGHT, begin + n * period)
            level = system.statistics().level
            assert level is not None
            if level.level == (2 if times > 1 else 1):
                changes = [each.time - (begin - began) for each in level.changes]
                found[name] = max([0.0, *changes]) / period
        got = run.finish(timeout=60)
    return Quantity(found[phase], got=got, want=outcome(sent))


def costly() -> Graph[list[int]]:
    stream = entry("rows")
    for _ in range(OPERATORS_IN_A_ROW):
        stream = stream.native(OPERATORS.Costly, NS)
    return stream.native(OPERATORS.InOrder).collect()


def feed(run: Any, first: int, rate: float, end: float) -> int:
    """Send rows at a rate until the end; return how many."""
    begin, sent = perf_counter(), 0
    while (now := perf_counter()) < end:
        due = int((now - begin) * rate)
        run.send("rows", [i << LOW_BITS for i in range(first + sent, first + due)])
        sent = due
        sleep(TICK)
    return sent


def idle(seconds: float) -> float:
    """Return the part of a processor that this process uses while nothing happens, in percent."""
    sleep(1.0)  # the level falls, and the workers park
    wall, used = perf_counter(), process_time()
    sleep(seconds)
    return 100 * (process_time() - used) / (perf_counter() - wall)
