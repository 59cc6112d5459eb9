"""A stream that asks a pool of processes with each row, which adds 1 to it."""

from typing import Any

from callboard import ActorSystem
from callboard.streams import entry
from calling.playing import Next
from savina.result import Result
from usage import Watch
from with_ray import cpu_of_children


def run(n: int, *, processes: int = 1) -> Result:
    with ActorSystem() as system:
        graph = entry("rows", int).ask(system.pool(Next, processes=processes)).collect()

        def answers(rows: list[int]) -> Any:
            run = system.run(graph)
            run.send("rows", rows)
            return run.finish()

        answers([*range(8 * processes)])
        elsewhere = cpu_of_children()
        watch = Watch()
        got = answers([*range(n)])
        spent = watch.stop()
        spent["cpu"] += cpu_of_children() - elsewhere
    return Result(n, got=hash(tuple(got)), want=hash(tuple(range(1, n + 1))), **spent)
