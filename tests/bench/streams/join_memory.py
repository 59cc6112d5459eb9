"""Memory of a band join: the growth of a process in MB, with 100,000 of n rows in the window.

Rows are made one by one, and none is held but by the join, or by a deque in plain Python.
"""

import random
from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from resource import RUSAGE_SELF, getrusage

from callboard import ActorSystem
from callboard.streams import Band, entry
from savina.result import Quantity
from streams.band_rows import BAND, R, S, digest, partners

WITHIN = 50_000
"""Rows of each stream that are in the window."""


def run(n: int, *, by: str) -> Quantity:
    """Join streams that have n rows together."""
    got = [0, 0]

    def count(pair: tuple[R, S]) -> None:
        r, s = pair
        got[0] += 1
        got[1] += (int(r.z) + 1) * (int(s.c) + 1) + max(r.ts, s.ts)

    before = most_held()
    if by == "deques":
        hold(n // 2)
        return Quantity(most_held() - before, got=None, want=None)
    join(n // 2, count)
    held = most_held() - before
    pairs = partners([r for r, _ in rows(n // 2)], [s for _, s in rows(n // 2)], WITHIN)
    return Quantity(held, got=got, want=digest(pairs))


def most_held() -> float:
    return getrusage(RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def rows(n: int) -> Iterator[tuple[R, S]]:
    chance = random.Random(n)
    for ts in range(n):
        x, y, a, b = (chance.randint(1, 10_000) for _ in range(4))
        yield R(ts, x, float(y), f"{ts:020}"), S(ts, a, float(b), float(ts), ts % 2 == 0)


def join(n: int, take: Callable[[tuple[R, S]], None]) -> None:
    where = Band("x", BAND, "a") & Band("y", BAND, "b")
    graph = entry("r", R).join(entry("s", S), by="ts", within=WITHIN, where=where).to(take)
    with ActorSystem() as system:
        run = system.run(graph, window=4)
        both = rows(n)
        while chunk := list(islice(both, 512)):
            run.send("r", [r for r, _ in chunk])
            run.send("s", [s for _, s in chunk])
        run.finish()


def hold(n: int) -> None:
    windows: deque[tuple[R, S]] = deque(maxlen=WITHIN)
    windows.extend(rows(n))
