"""The deep replication pipeline of Prokesch 2011, section 6.1.1: a stage for each step of a record.

Each stage takes one from a record's number and adds one to the count of its steps, until the number
is zero. The stages are made on demand. An operation is a record at a stage.
"""

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from callboard import ActorSystem
from callboard.nets import Net, box, parse
from callboard.observing import record_trace
from nets.running import TIMEOUT, outcome
from savina.result import Result
from usage import Watch

FILTER = "[{<n>, <steps>} -> {<n=n-1>, <steps=steps+1>}]"
EXIT = "{<n>} if <n <= 0>"


@box("(<n>, <steps>) -> (<n>, <steps>)")
def step(n: int, steps: int) -> dict[str, int]:
    return {"<n>": n - 1, "<steps>": steps + 1}


def pipeline(stage: str) -> Net:
    """Return the net, whose stages are filters or boxes."""
    if stage == "filter":
        return parse(f"net deep connect {FILTER} * {EXIT};")
    declared = "box step ((<n>, <steps>) -> (<n>, <steps>));"
    return parse(f"net deep {{ {declared} }} connect step * {EXIT};", boxes={"step": step})


def run(
    n: int,
    *,
    depth: int = 10_000,
    stage: str = "filter",
    by: str = "net",
    logs: bool = False,
    **options: Any,
) -> Result:
    chosen = random.Random(1)
    numbers = [chosen.randint(0, depth) for _ in range(n)]
    rows = [{"n": number, "steps": 0} for number in numbers]
    if logs:
        found, costs, lost = logged(pipeline(stage), rows, **options)
    else:
        found, costs, lost = outcome(pipeline(stage), rows, n, by, **options)
    got = [len(found), sum(output["<steps>"] for output in found), lost]
    return Result(sum(numbers) + n, **costs, got=got, want=[n, sum(numbers), 0])


def logged(
    net: Net, rows: list[dict[str, Any]], **options: Any
) -> tuple[list[Any], dict[str, float], int]:
    """Run the net, and write all that is monitored to a file."""
    with TemporaryDirectory() as folder, ActorSystem(**{"workers": 1, **options}) as system:
        record_trace(system, Path(folder, "run.perfetto-trace"))
        watch = Watch()
        run = system.run(net)
        run.send(rows, timeout=TIMEOUT)
        return run.finish(TIMEOUT), watch.stop(), system.dead_letters.count
