"""Two trivial boxes in series, compared with two bare calls that pass the dict.

An operation is a record through both.
"""

from callboard import ActorSystem
from callboard.nets import box
from nets.running import TIMEOUT
from savina.result import Result
from usage import Watch

Row = dict[str, int]


def double(x: int) -> Row:
    return {"y": 2 * x}


def add(y: int) -> Row:
    return {"z": y + 1}


def run(n: int, *, by: str = "net") -> Result:
    rows = [{"x": number} for number in range(n)]
    net = box(double, "(x) -> (y)") >> box(add, "(y) -> (z)")
    if by == "calls":
        watch = Watch()
        found = [add(double(row["x"])["y"]) for row in rows]
        costs = watch.stop()
    else:
        with ActorSystem(workers=1) as system:
            run = system.run(net)
            watch = Watch()
            run.send(rows, timeout=TIMEOUT)
            found = run.finish(TIMEOUT)
            costs = watch.stop()
    got = [len(found), sum(row["z"] for row in found)]
    return Result(n, **costs, got=got, want=[n, n * n])
