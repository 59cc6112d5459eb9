"""Hops of records from entity to entity, where entities are filters and combinators alone.

An operation is a hop: a record at a filter, at a replica of a star or before it, at a split, or at
a feedback.
"""

from typing import Any

from callboard.nets import parse
from nets.running import outcome
from savina.result import Result

RECORDS = 10
NETS = {  # with the hops of a step
    "star": ("net star connect [{<n>} -> {<n=n-1>}] * {<n>} if <n <= 0>;", 2),
    "split": (
        "net ring connect ([{<n>, <i>} -> {<n=n-1>, <i=(i+1)%100>}] ! <i>) \\ {<n>} if <n > 0>;",
        3,
    ),
}


def run(n: int, *, net: str = "star", by: str = "net", **options: Any) -> Result:
    text, hops = NETS[net]
    steps = max(1, n // (hops * RECORDS))
    rows = [{"<n>": steps, "<i>": number} for number in range(RECORDS)]
    found, costs, lost = outcome(parse(text), rows, RECORDS, by, **options)
    ends = sorted(output["<i>"] for output in found)
    moved = steps if net == "split" else 0
    want = sorted((number + moved) % 100 for number in range(RECORDS))
    return Result(RECORDS * (hops * steps + 1), **costs, got=[ends, lost], want=[want, 0])
