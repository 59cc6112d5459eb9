"""Pairs: independent ping-pongs, four for each worker, both players of a pair on the same worker.

With more workers there is more to do; where they run in parallel, the rate rises as they do.
"""

from time import perf_counter
from typing import Any

from callboard.scheduling.placement import Fixed
from hosts.base import Ref
from savina.result import Result
from savina.thread_ring import JOIN, Player

PAIRS = 4  # a worker


def run(host: Any, n: int) -> Result:
    workers = host.workers
    pairs: list[list[Ref]] = []
    for number in range(PAIRS * workers):
        pair: list[Ref] = []
        for place in (0, 1):
            home = Fixed(number % workers)
            pair.append(host.spawn(Player, place, pair, host.done, placement=home))
        pairs.append(pair)
        host.feed_all(pair, [JOIN])
    begin = perf_counter()
    for pair in pairs:
        host.feed(pair[0], [n])
    last = host.wait(len(pairs))
    return Result(n * len(pairs), perf_counter() - begin, got=last, want=[n % 2] * len(pairs))
