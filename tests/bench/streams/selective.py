"""A stateless operator that gives 50 rows for each, and a keyed one that takes them (figure 13)."""

from typing import Any

from callboard.streams import Stream
from savina.result import Quantity, Result
from streams.playing import OPERATORS, play, scattered


def run(
    n: int, *, workers: int = 1, ns: int = 100_000, outputs: int = 50, **options: Any
) -> Result | Quantity:
    def build(stream: Stream[int], cost: float) -> Stream[int]:
        each = int(ns / outputs * cost)  # so that both take as long for a row that comes
        return stream.native(OPERATORS.Parametric, int(ns * cost), outputs).native(
            OPERATORS.Parametric, each, partitions=100
        )

    return play(build, scattered(n), workers=workers, **options)
