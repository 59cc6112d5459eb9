"""The rows of the join's benchmark in Gulisano et al. 2015, section VI, and their pairs.

A row of either stream comes at each time. Values are uniform in 1 to 10,000, and partners differ by
10 at most in both: 1 of 250,000 comparisons finds some.
"""

import random
from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

BAND = 10


class R(NamedTuple):
    ts: int
    x: int
    y: float
    z: str


class S(NamedTuple):
    ts: int
    a: int
    b: float
    c: float
    d: bool


class Pair(NamedTuple):
    ts: int
    x: int
    y: float
    z: str
    a: int
    b: float
    c: float
    d: bool


def rows(n: int) -> tuple[list[R], list[S]]:
    """Make n rows of each; `z`, of 20 characters, and `c` say which ones they are."""
    chance = random.Random(n)

    def values() -> tuple[int, float]:
        return chance.randint(1, 10_000), chance.uniform(1, 10_000)

    return [R(ts, *values(), f"{ts:020}") for ts in range(n)], [
        S(ts, *values(), float(ts), ts % 2 == 0) for ts in range(n)
    ]


def are_near(r: R, s: S) -> bool:
    return abs(r.x - s.a) <= BAND and abs(r.y - s.b) <= BAND


def pair(r: R, s: S) -> Pair:
    return Pair(max(r.ts, s.ts), r.x, r.y, r.z, s.a, s.b, s.c, s.d)


def digest(pairs: Iterable[tuple[object, ...]]) -> list[int]:
    """Count pairs, and sum up which rows they are of and when they come, in any order."""
    found = [Pair(*each) for each in pairs]  # type: ignore[arg-type]
    return [len(found), sum((int(p.z) + 1) * (int(p.c) + 1) + p.ts for p in found)]


def partners(lefts: list[R], rights: list[S], within: int) -> list[Pair]:
    """Find the pairs with all rows at hand: near ones lie in one cell or in neighbours."""
    cells: defaultdict[tuple[int, int], list[S]] = defaultdict(list)
    for s in rights:
        cells[s.a // BAND, int(s.b // BAND)].append(s)
    around = [(dx, dy) for dx in (-1, 0, 1) for dy in (-1, 0, 1)]
    return [
        pair(r, s)
        for r in lefts
        for dx, dy in around
        for s in cells.get((r.x // BAND + dx, int(r.y // BAND) + dy), ())
        if abs(r.ts - s.ts) <= within and are_near(r, s)
    ]
