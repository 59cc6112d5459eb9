"""The memory of a star's replica: bytes for each of n boxes, made by one record."""

from pathlib import Path
from resource import getpagesize

from callboard import ActorSystem
from callboard.nets import star
from nets.replication import EXIT, step
from nets.running import TIMEOUT
from savina.result import Quantity


def run(n: int) -> Quantity:
    net = star(step, EXIT, limit=n)
    with ActorSystem(workers=1) as system:
        run = system.run(net)
        run.send({"n": 10, "steps": 0}, timeout=TIMEOUT)
        before = resident()
        run.send({"n": n, "steps": 0}, timeout=TIMEOUT)
        taken = resident() - before
        found = run.finish(TIMEOUT)
    return Quantity(taken / n, got=[output["<steps>"] for output in found], want=[10, n])


def resident() -> int:
    """Return how many bytes of memory the process has."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * getpagesize()
