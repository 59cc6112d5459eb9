"""A keyed native operator of `ns` nanoseconds for a row, with skewed keys (section 7.2).

Keys are normally distributed in [-1, 1] around `mean`, and partitioned by range; sigma=0 stands for
evenly. The paper's distribution has its mean in the middle, where two partitions meet.
"""

from random import Random
from typing import Any

from callboard.streams import Stream
from savina.result import Quantity, Result
from streams.playing import LOW_BITS, OPERATORS, play


def run(
    n: int,
    *,
    workers: int = 1,
    ns: int = 10_000,
    sigma: float = 0,
    mean: float = 0,
    partitions: int = 100,
    **options: Any,
) -> Result | Quantity:
    def build(stream: Stream[int], cost: float) -> Stream[int]:
        return stream.native(OPERATORS.Ranged, int(ns * cost), partitions, partitions=partitions)

    random = Random(1)
    rows = [i << LOW_BITS | position(random, mean, sigma) for i in range(n)]
    return play(build, rows, workers=workers, **options)


def position(random: Random, mean: float, sigma: float) -> int:
    """Return a key's place among all, 0 to 65535."""
    while True:
        key = random.gauss(mean, sigma) if sigma else random.uniform(-1, 1)
        if -1 <= key < 1:
            return int((key + 1) * 32768)
