"""Python and native actors side by side: each worker has a ping-pong of either kind.

The native one is ten times as long. What is measured is until all are over, so a worker that waits
for the interpreter instead of running its native actors shows.
"""

from time import perf_counter
from typing import Any

from callboard.scheduling.placement import Fixed
from hosts.base import Ref
from natives import load
from savina.result import Result
from savina.thread_ring import JOIN, Player

LONGER = 10


def run(host: Any, n: int) -> Result:
    workers = host.workers
    native_player = load().Player
    python_player = host.actor_class(Player)
    starts: list[tuple[Ref, int]] = []
    for worker in range(workers):
        for player, length in ((python_player, n), (native_player, LONGER * n)):
            pair: list[Ref] = []
            for place in (0, 1):
                home = Fixed(worker)
                pair.append(host.system.spawn(player, place, pair, host.done, placement=home))
            for ref in pair:
                ref.tell(JOIN)
            starts.append((pair[0], length))
    begin = perf_counter()
    for ref, length in starts:
        ref.tell(length)
    last = host.wait(len(starts))
    messages = sum(length for _, length in starts)
    want = [length % 2 for _, length in starts]
    return Result(messages, perf_counter() - begin, got=sorted(last), want=sorted(want))
