"""A join of integers by a C function that compares each pair, in lanes.

A row's upper bits are its time, and the lowest 20 its value; partners are 2 apart at most, and one
pair of 200,000 is.
"""

import random
from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from callboard import ActorSystem
from callboard.streams import entry
from natives import load
from savina.result import Result
from streams.timing import in_turns
from usage import Watch

BITS, DISTANCE = 20, 2
WITHIN = 5_000
"""Rows of each stream that are in the window."""
CHUNK = 512

Pair = tuple[int, int]


def run(n: int, *, lanes: int, workers: int) -> Result:
    """Join streams that have n rows together."""
    lefts, rights = rows(n // 2, 1), rows(n // 2, 2)
    where = load("streams").NearLowBits(BITS, DISTANCE)
    joined = entry("left").join(entry("right"), by=time_of, within=WITHIN, where=where, lanes=lanes)
    with ActorSystem(workers=workers) as system:
        run = system.run(joined.collect())
        watch = Watch()
        for name, some in in_turns(CHUNK, left=lefts, right=rights):
            run.send(name, some)
        found = run.finish()
        spent = watch.stop()
        (compared,) = {each.lanes for each in run.statistics().operators if each.lanes} or {(1,)}
    uneven = max(compared) / min(compared)
    got, want = digest(found), digest(partners(lefts, rights))
    return Result(2 * len(lefts), **spent, got=(got, uneven < 1.01), want=(want, True))


def rows(n: int, seed: int) -> list[int]:
    chance = random.Random(seed)
    return [at << BITS | chance.getrandbits(BITS) for at in range(n)]


def time_of(row: int) -> int:
    return row >> BITS


def partners(lefts: list[int], rights: list[int]) -> list[Pair]:
    """Find the pairs with all rows at hand."""
    low = (1 << BITS) - 1
    by_value = sorted((row & low, row) for row in rights)
    values = [value for value, _ in by_value]
    return [
        (left, right)
        for left in lefts
        for _, right in by_value[
            bisect_left(values, (left & low) - DISTANCE) : bisect_right(
                values, (left & low) + DISTANCE
            )
        ]
        if abs(time_of(left) - time_of(right)) <= WITHIN
    ]


def digest(pairs: Iterable[Pair]) -> list[int]:
    found = list(pairs)
    return [len(found), sum(left * right % 1_000_003 for left, right in found)]
