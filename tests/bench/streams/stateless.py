"""Stateless native operators in a row, each of `ns` nanoseconds for a row.

With ordered=False they are declared stateful: one worker does the same, and nothing is reordered.
"""

from typing import Any

from callboard.streams import Stream
from savina.result import Quantity, Result
from streams.playing import OPERATORS, play, scattered


def run(
    n: int,
    *,
    workers: int = 1,
    ns: int = 1000,
    operators: int = 1,
    ordered: bool = True,
    **options: Any,
) -> Result | Quantity:
    operator = OPERATORS.Parametric if ordered else OPERATORS.SerialParametric

    def build(stream: Stream[int], cost: float) -> Stream[int]:
        for _ in range(operators):
            stream = stream.native(operator, int(ns * cost))
        return stream

    return play(build, scattered(n), workers=workers, **options)
