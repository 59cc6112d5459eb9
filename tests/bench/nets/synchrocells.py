"""The synchronisation pipeline of Prokesch 2011, section 6.1.2: cells come and go all the time.

A chain of cells, each of which joins a record of either kind. Five of one kind come, then five of
the other, and so on. An operation is a pair, and so a cell.
"""

from typing import Any

from callboard.nets import parse
from nets.running import outcome
from savina.result import Result

DISTANCE = 5


def run(n: int, *, by: str = "net", **options: Any) -> Result:
    pairs = n - n % DISTANCE
    rows = [
        {kind: number}
        for first in range(0, pairs, DISTANCE)
        for kind in ("<a>", "<b>")
        for number in range(first, first + DISTANCE)
    ]
    net = parse("net pairs connect [| {<a>}, {<b>} |] * {<a>, <b>};")
    found, costs, lost = outcome(net, rows, pairs, by, **options)
    right = sum(output["<a>"] == output["<b>"] for output in found)
    return Result(pairs, **costs, got=[len(found), right, lost], want=[pairs, pairs, 0])
