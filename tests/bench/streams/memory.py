"""Memory: the peak MB of a process that feeds a graph n rows, as fast as it takes them."""

from resource import RUSAGE_SELF, getrusage

from callboard import ActorSystem
from callboard.streams import entry
from savina.result import Quantity
from streams.python_pipeline import KEYS, is_kept, key_of, scale

PERIOD = 4 * KEYS
"""So many rows: as many are kept of each such chunk."""


def run(n: int) -> Quantity:
    n -= n % PERIOD
    last: dict[int, int] = {}

    def keep_last(counted: tuple[int, int]) -> None:
        last[counted[0]] = counted[1]

    graph = entry("rows").map(scale).filter(is_kept).key_by(key_of).count().to(keep_last)
    with ActorSystem(workers=1) as system:
        run = system.run(graph)
        run.send("rows", range(n))
        run.finish()
    held = getrusage(RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    want = sum(is_kept(scale(row)) for row in range(PERIOD)) * (n // PERIOD)
    return Quantity(held, got=sum(last.values()), want=want)
