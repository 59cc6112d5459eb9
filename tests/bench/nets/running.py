"""Ways to run a net: as callboard runs nets, or with a task or a thread for each entity."""

from typing import Any

from callboard import ActorSystem
from callboard.nets import Net
from nets.entities import play
from usage import Watch

TIMEOUT = 110.0  # seconds; less than a competitor has

WAYS = ("net", "tasks", "threads")


def outcome(
    net: Net, rows: list[dict[str, Any]], outputs: int, by: str, **options: Any
) -> tuple[list[Any], dict[str, float], int]:
    """Return what came out, what it took, and how many records became dead letters."""
    if by not in WAYS:
        raise ValueError(f"by is one of {', '.join(WAYS)}, not {by!r}")
    with ActorSystem(**{"workers": 1, **options}) as system:
        watch = Watch()
        if by == "net":
            run = system.run(net)
            run.send(rows, timeout=TIMEOUT)
            found: list[Any] = run.finish(TIMEOUT)
        else:
            found = play(system, net, rows, outputs, TIMEOUT, by == "threads")
        costs = watch.stop()
        lost = system.dead_letters.count
    return found, costs, lost
