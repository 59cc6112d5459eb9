"""A box of plain Python, in two worker processes, on the coordinator's thread, and in a plain loop.

An operation is a record. A step of the function takes some 50 ns.
"""

from functools import partial

from callboard import ActorSystem
from callboard.nets import box
from nets.running import TIMEOUT
from savina.result import Result
from usage import Watch

Row = dict[str, int]


def mixed(steps: int, x: int) -> int:
    """Take some time."""
    for step in range(steps):
        x = (31 * x + step) & 0xFFFFFF
    return x


def run(n: int, *, steps: int = 100, processes: int = 0, by: str = "net") -> Result:
    rows = [{"x": number} for number in range(n)]
    function = partial(mixed, steps)
    found: list[Row]
    if by == "loop":
        watch = Watch()
        found = [{"y": function(row["x"])} for row in rows]
        costs = watch.stop()
    else:
        net = box(function, "(x) -> (y)", name="mixed")
        with ActorSystem(workers=1, processes=processes) as system:
            with system.run(net) as first:  # which starts the processes
                first.send(rows[:1000], timeout=TIMEOUT)
                first.finish(TIMEOUT)
            run = system.run(net)
            watch = Watch()
            run.send(rows, timeout=TIMEOUT)
            found = run.finish(TIMEOUT)
            costs = watch.stop()
    want = [function(x) for x in range(min(n, 1000))]
    return Result(n, **costs, got=[row["y"] for row in found[:1000]], want=want)
