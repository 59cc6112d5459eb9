"""Python and native actors side by side: `pairs` ping-pongs of either kind, one for each worker.

The native one is ten times as long. What is measured is until all are over, so a worker that waits
for the interpreter instead of running its native actors shows.
"""

from typing import Any

from hosts.base import Ref
from natives import load
from savina.result import Result
from savina.thread_ring import JOIN, Player
from usage import Watch

LONGER = 10


def run(host: Any, n: int, pairs: int = 0) -> Result:
    native_player = load().Player
    python_player = host.actor_class(Player)
    starts: list[tuple[Ref, int]] = []
    for _ in range(pairs or host.workers):
        for player, length in ((python_player, n), (native_player, LONGER * n)):
            pair: list[Ref] = []
            for place in (0, 1):
                pair.append(host.system.spawn(player, place, pair, host.done))
            for ref in pair:
                ref.tell(JOIN)
            starts.append((pair[0], length))
    watch = Watch()
    for ref, length in starts:
        ref.tell(length)
    last = host.wait(len(starts))
    messages = sum(length for _, length in starts)
    want = [length % 2 for _, length in starts]
    return Result(messages, **watch.stop(), got=sorted(last), want=sorted(want))
