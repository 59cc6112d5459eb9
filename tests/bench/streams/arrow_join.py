"""Joins of Arrow batches, Arrow in and Arrow out: the paper's band join, and one by equal keys.

The band join is that of Gulisano et al. 2015 (ScaleJoin), section VI: x an integer and y a float of
32 bits, uniform in 1 to 10,000, and a band of 10 on both; a pair of rows in 250,000 matches.
"""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from callboard.streams import Band, Equal, Graph, Predicate, entry
from savina.result import Result
from streams.timing import timed

BATCH = 8_192
VALUES = 10_000

WHERE: dict[str, Predicate] = {"band": Band("x", 10) & Band("y", 10.0), "equal": Equal("k")}


def made(seed: int, n: int, keys: int) -> pa.RecordBatch:
    """Make a stream of a row at each time."""
    draw = np.random.default_rng(seed)
    return pa.record_batch(
        {
            "t": np.arange(n),
            "x": draw.integers(1, VALUES, n, np.int32, endpoint=True),
            "y": draw.uniform(1, VALUES, n).astype(np.float32),
            "k": draw.integers(0, keys, n),
        }
    )


def wanted(by: str, left: pa.RecordBatch, right: pa.RecordBatch, window: int) -> list[int]:
    """Count and sum up the pairs by sorting: for each row, the others of near x or equal k."""
    column, near = ("x", 10) if by == "band" else ("k", 0)
    mine, other = (pc.cast(some[column], pa.int64()).to_numpy() for some in (left, right))
    order = np.argsort(other, kind="stable")
    begins = np.searchsorted(other[order], mine - near)
    counts = np.searchsorted(other[order], mine + near, "right") - begins
    pairs = found = 0
    for first in range(0, len(mine), BATCH):  # all at once would be too many
        some = slice(first, first + BATCH)
        rows = np.repeat(np.arange(len(mine))[some], counts[some])
        before = np.cumsum(counts[some]) - counts[some]
        places = np.arange(len(rows)) + np.repeat(begins[some] - before, counts[some])
        partners = order[places]
        keep = np.abs(rows - partners) <= window
        if by == "band":
            y = [some["y"].to_numpy().astype(float) for some in (left, right)]
            keep &= np.abs(y[0][rows] - y[1][partners]) <= 10
        pairs += int(keep.sum())
        found += int((rows[keep] * 3 + partners[keep]).sum())
    return [pairs, found]


def run(
    n: int, *, by: str = "band", window: int = 300_000, keys: int = 100_000, **options: Any
) -> Result:
    """Join two streams of `n` / 2 rows, of which `window` on each side are seen by a row."""
    left, right = (made(seed, n // 2, keys) for seed in range(2))
    pairs = entry("left").join_batches(
        entry("right"), by="t", within=window, where=WHERE[by], n=BATCH
    )
    graph: Graph[Any] = pairs.collect()
    arriving = [
        (name, [some.slice(begin, BATCH)])
        for begin in range(0, n // 2, BATCH)
        for name, some in (("left", left), ("right", right))
    ]
    seconds, out = timed(graph, arriving, batch_size=1, **options)
    found = sum(3 * pc.sum(some["t"]).as_py() + pc.sum(some["t_right"]).as_py() for some in out)
    want = wanted(by, left, right, window)
    return Result(2 * (n // 2), seconds, got=[sum(map(len, out)), found], want=want)
