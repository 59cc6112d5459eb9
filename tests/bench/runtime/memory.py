"""Memory: a million idle actors, each of which has handled a message, with their refs."""

from pathlib import Path
from resource import getpagesize

from hosts.base import Host
from savina.counting import Counter
from savina.result import Quantity


def resident() -> int:
    """Return this process's resident bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()


def run(host: Host, n: int) -> Quantity:
    before = resident()
    actors = [host.spawn(Counter) for _ in range(n)]
    host.feed_all(actors, [1])
    host.ask(actors[-1], 0)
    held = resident() - before
    sample = actors[:: max(1, n // 1_000)]
    handled = sum(host.ask(actor, 0) for actor in sample)
    return Quantity(held / n, got=handled, want=len(sample))
