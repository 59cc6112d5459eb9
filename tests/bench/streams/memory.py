"""Memory: the most that a process held in which a graph was fed n rows as fast as it takes them, in MB."""

from resource import RUSAGE_SELF, getrusage

from callboard import ActorSystem
from callboard.streams import entry
from savina.result import Quantity
from streams.python_pipeline import KEYS, is_kept, key_of, scale


def run(n: int) -> Quantity:
    last: dict[int, int] = {}

    def keep_last(counted: tuple[int, int]) -> None:
        last[counted[0]] = counted[1]

    graph = entry("rows").map(scale).filter(is_kept).key_by(key_of).count().to(keep_last)
    with ActorSystem() as system:
        run = system.run(graph)
        run.send("rows", range(n))
        run.finish()
    held = getrusage(RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    period = 4 * KEYS  # in which each row number modulo 4 and modulo 100 comes once
    want = sum(is_kept(scale(row)) for row in range(period)) * (n // period)
    return Quantity(held, got=sum(last.values()), want=want)
