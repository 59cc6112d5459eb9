"""The rate of a graph after its first seconds, when `processes="auto"` has made its choice."""

from dataclasses import replace
from itertools import cycle, islice
from time import monotonic

from callboard import ActorSystem
from processes.playing import graph_of
from processes.work import calculation, expected
from savina.result import Result
from usage import Watch
from with_ray import cpu_of_children

CHUNK = 1_000  # rows that are sent at a time meanwhile


def run(
    n: int,
    *,
    processes: int | str,
    microseconds: float = 1,
    keyed: bool = False,
    seconds: float = 1,
) -> Result:
    """Send rows for some seconds, and measure the next `n` ones, in the same run."""
    work = calculation(n, microseconds, keyed)
    rows = cycle(work.rows)
    came = 0
    with ActorSystem(processes=processes) as system:
        run = system.run(graph_of(work))
        begun = monotonic()
        while monotonic() < begun + seconds:
            run.send("rows", islice(rows, CHUNK))
            came += CHUNK
        run.snapshot()  # no row is on its way
        timed = [*islice(rows, n)]
        elsewhere = cpu_of_children()
        watch = Watch()
        run.send("rows", timed)
        outputs = run.finish()
        spent = watch.stop()
        spent["cpu"] += cpu_of_children() - elsewhere
    want = expected(replace(work, rows=[*islice(cycle(work.rows), came + n)]))
    wrong = [pair for pair in zip(outputs, want, strict=False) if pair[0] != pair[1]][:1]
    return Result(n, got=[len(outputs), *wrong], want=[came + n], **spent)
