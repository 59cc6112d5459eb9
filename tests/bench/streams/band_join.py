"""A band join of two streams of Python rows within a window, by callboard and by others.

    graph      callboard's join, `where=` a Band or a Python function
    plain      two deques, and a comparison of each row with all of the other's
    stateful   Bytewax with the same two deques as the state of one key
    window     Bytewax's own join, `join_window`, of sliding windows that are twice as long as
               partners may be apart; a filter takes what is near, once
    duckdb     a query over all rows, by one thread
    polars     `join_where` over all rows, by one thread

The last two are timed from rows to rows, as the others are.
"""

import os
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

from callboard.streams import Band, Stream, entry
from savina.result import Result
from streams.band_rows import BAND, Pair, R, S, are_near, digest, pair, partners, rows
from streams.timing import in_turns, timed

Found = Sequence[tuple[Any, ...]]
CHUNK = 512  # rows of a stream that are sent one after the other


def run(n: int, *, by: str = "graph", within: int = 500, **options: Any) -> Result:
    """Join streams that have n rows together."""
    lefts, rights = rows(n // 2)
    want = digest(partners(lefts, rights, within))
    seconds, found = BY[by](lefts, rights, within, **options)
    return Result(2 * (n // 2), seconds, got=digest(found), want=want)


def joined(within: int, where: str = "band") -> Stream[Pair]:
    partner = Band("x", BAND, "a") & Band("y", BAND, "b") if where == "band" else are_near
    return entry("r", R).join(entry("s", S), by="ts", within=within, where=partner, combine=pair)


def by_graph(
    lefts: list[R], rights: list[S], within: int, where: str = "band", **options: Any
) -> tuple[float, Found]:
    graph = joined(within, where).collect()
    return timed(graph, in_turns(CHUNK, r=lefts, s=rights), None, **options)


# --- in plain Python, and in Bytewax --------------------------------------------------------------


class Windows:
    """The rows of both streams that others may be compared with yet."""

    def __init__(self, within: int) -> None:
        self.within = within
        self.lefts: deque[R] = deque()
        self.rights: deque[S] = deque()

    def add(self, row: R | S) -> list[tuple[Any, ...]]:
        for window in (self.lefts, self.rights):
            while window and row.ts - window[0].ts > self.within:
                window.popleft()
        if isinstance(row, R):
            self.lefts.append(row)
            return [pair(row, s) for s in self.rights if are_near(row, s)]
        self.rights.append(row)
        return [pair(r, row) for r in self.lefts if are_near(r, row)]


def in_order(lefts: Iterable[R], rights: Iterable[S]) -> Iterator[R | S]:
    for r, s in zip(lefts, rights, strict=True):
        yield r
        yield s


def by_plain_python(lefts: list[R], rights: list[S], within: int) -> tuple[float, Found]:
    begin = perf_counter()
    windows = Windows(within)
    found = [each for row in in_order(lefts, rights) for each in windows.add(row)]
    return perf_counter() - begin, found


def by_stateful(
    lefts: list[R], rights: list[S], within: int, batch_size: int = 1_000
) -> tuple[float, Found]:
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    def add(windows: Windows | None, row: Any) -> tuple[Windows | None, Iterable[Any]]:
        windows = windows or Windows(within)
        return windows, windows.add(row)

    found: list[tuple[str, Any]] = []
    flow = Dataflow("join")
    merged = op.input("rows", flow, TestingSource(in_order(lefts, rights), batch_size))
    keyed = op.key_on("key", merged, lambda row: "all")
    op.output("found", op.stateful_flat_map("join", keyed, add), TestingSink(found))
    begin = perf_counter()
    run_main(flow)
    return perf_counter() - begin, [each for _, each in found]


def by_window(
    lefts: list[R], rights: list[S], within: int, batch_size: int = 1_000
) -> tuple[float, Found]:
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.operators.windowing import EventClock, SlidingWindower, join_window
    from bytewax.testing import TestingSink, TestingSource, run_main

    start = datetime(2020, 1, 1, tzinfo=UTC)
    step = timedelta(seconds=within)

    def time_of(row: R | S) -> datetime:
        return start + timedelta(seconds=row.ts)

    def is_pair(item: tuple[str, tuple[int, tuple[R, S]]]) -> bool:
        _, (window, (r, s)) = item
        begins = window * within  # a pair is in the window in whose first half it begins
        first, last = sorted((r.ts, s.ts))
        return begins <= first < begins + within and last - first <= within and are_near(r, s)

    found: list[tuple[str, tuple[int, tuple[R, S]]]] = []
    flow = Dataflow("join")
    inputs = {
        name: op.input(name, flow, TestingSource(side, batch_size))
        for name, side in (("r", lefts), ("s", rights))
    }
    sides = [op.key_on(f"key {name}", side, lambda _: "all") for name, side in inputs.items()]
    clock: Any = EventClock(time_of, wait_for_system_duration=timedelta(seconds=batch_size))
    windower = SlidingWindower(length=2 * step, offset=step, align_to=start)
    joined = join_window("join", clock, windower, *sides, insert_mode="product")
    op.output("found", op.filter("is_pair", joined.down, is_pair), TestingSink(found))
    begin = perf_counter()
    run_main(flow)
    return perf_counter() - begin, [pair(r, s) for _, (_, (r, s)) in found]


# --- in data bases and frames ---------------------------------------------------------------------


def columns(of: Sequence[R] | Sequence[S]) -> dict[str, Sequence[Any]]:
    return dict(zip(of[0]._fields, zip(*of, strict=True), strict=True))


def by_duckdb(lefts: list[R], rights: list[S], within: int) -> tuple[float, Found]:
    import duckdb
    import pyarrow

    with duckdb.connect(config={"threads": 1}) as base:
        begin = perf_counter()
        base.register("r", pyarrow.table(columns(lefts)))
        base.register("s", pyarrow.table(columns(rights)))
        found = base.execute(
            "select greatest(r.ts, s.ts), x, y, z, a, b, c, d from r join s"
            f" on x between a - {BAND} and a + {BAND} and y between b - {BAND} and b + {BAND}"
            f" and r.ts between s.ts - {within} and s.ts + {within}"
        ).fetchall()
        return perf_counter() - begin, found


def by_polars(lefts: list[R], rights: list[S], within: int) -> tuple[float, Found]:
    os.environ["POLARS_MAX_THREADS"] = "1"  # read when it is imported
    import polars
    from polars import col

    begin = perf_counter()
    r = polars.DataFrame(columns(lefts))
    s = polars.DataFrame(columns(rights)).rename({"ts": "other"})
    found = r.join_where(
        s,
        col("x") >= col("a") - BAND,
        col("x") <= col("a") + BAND,
        col("y") >= col("b") - BAND,
        col("y") <= col("b") + BAND,
        col("ts") >= col("other") - within,
        col("ts") <= col("other") + within,
    ).select(polars.max_horizontal("ts", "other"), "x", "y", "z", "a", "b", "c", "d")
    answer = found.rows()
    return perf_counter() - begin, answer


BY = {
    "graph": by_graph,
    "plain": by_plain_python,
    "stateful": by_stateful,
    "window": by_window,
    "duckdb": by_duckdb,
    "polars": by_polars,
}
