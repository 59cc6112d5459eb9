"""Programs of pure coordination; an operation is a call of their recursion, or a division."""

from typing import Any

from callboard.nets import parse
from nets.programs import PROGRAMS, summary, values
from nets.running import outcome
from savina.result import Result


def run(n: int, *, program: str, by: str = "net", **options: Any) -> Result:
    chosen = PROGRAMS[program]
    want = chosen.answers(n)
    net = parse(chosen.text)
    found, costs, lost = outcome(net, chosen.rows(n), len(want), by, **options)
    kept = chosen.kept(n) if by == "net" else 0  # a task's state is no record
    got = [summary(values(found)), lost]
    return Result(chosen.operations(n), **costs, got=got, want=[summary(want), kept])
