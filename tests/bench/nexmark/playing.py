"""Plays a query of Nexmark, and compares its answer with that of SQL on the finished streams.

    rows             callboard's operators on Python rows
    batches          callboard's operators on Arrow batches
    bytewax          Bytewax on Python rows
    bytewax_batches  Bytewax on Arrow batches, by the same functions as callboard's
    duckdb           the query on all rows at once

Rows and batches are made beforehand, and are handed over in order of time. Rows are counted that a
query reads: bids, or persons and auctions, or auctions and bids. Seconds are processor time, of all
threads together: so a rate is what one core does.
"""

from collections.abc import Callable
from itertools import chain
from operator import attrgetter, itemgetter
from typing import Any

import pyarrow as pa

from callboard import ActorSystem
from callboard.streams import Graph
from nexmark import batches, rows
from nexmark.events import Events
from nexmark.oracle import READS, Clock, by_duckdb, comparable, of_batches, of_rows
from savina.result import Result

BATCH = 8_192  # rows of a stream that are handed over together
Answer = tuple[float, pa.Table]


def run(n: int, *, query: str, by: str, **options: Any) -> Result:
    pa.set_cpu_count(1)
    events = Events(n)
    want = comparable(query, by_duckdb(query, events)[1])
    seconds, answer = BY[by](query, events, **options)
    got = comparable(query, answer)
    read = sum(getattr(events, name).num_rows for name in READS[query])
    if got.equals(want):
        return Result(read, seconds, got=len(want), want=len(want))
    return Result(read, seconds, got=f"{len(got)} rows, which differ", want=len(want))


def handed_over(events: Events, query: str, made: Callable[[str], Any]) -> list[tuple[str, Any]]:
    """Cut each stream into chunks, which are handed over by the times at which they are full."""
    chunks = []
    for name in READS[query]:
        rows, times = made(name), getattr(events, name)["time"].to_numpy()
        for begin in range(0, len(times), BATCH):
            chunk = rows[begin : begin + BATCH]
            chunks.append((times[min(begin + BATCH, len(times)) - 1], name, chunk))
    return [(name, chunk) for _, name, chunk in sorted(chunks, key=itemgetter(0))]


def feed(graph: Graph[Any], parts: list[tuple[str, Any]], **options: Any) -> tuple[float, Any]:
    with ActorSystem(workers=1) as system:
        run = system.run(graph, **options)
        clock = Clock()
        for name, part in parts:
            run.send(name, part)
        out = run.finish()
        return clock.seconds(), out


def by_rows(query: str, events: Events, **options: Any) -> Answer:
    chunks = handed_over(events, query, lambda name: rows.rows_of(events, name))
    seconds, out = feed(rows.GRAPHS[query](), chunks, **options)
    return seconds, of_rows(query, out)


def batches_of(events: Events, query: str) -> list[tuple[str, pa.RecordBatch]]:
    def whole(name: str) -> pa.RecordBatch:
        return getattr(events, name).combine_chunks().to_batches()[0]

    return handed_over(events, query, whole)


def by_batches(query: str, events: Events, **options: Any) -> Answer:
    chunks = [(name, [batch]) for name, batch in batches_of(events, query)]
    seconds, out = feed(batches.GRAPHS[query](), chunks, **options)
    return seconds, of_batches(query, out)


def by_bytewax(query: str, events: Events, batch_size: int = 1_000) -> Answer:
    from nexmark import flows

    made = [rows.rows_of(events, name) for name in READS[query]]
    in_order = made[0] if len(made) == 1 else sorted(chain(*made), key=attrgetter("time"))
    seconds, out = flows.play(flows.FLOWS, query, in_order, batch_size)
    return seconds, of_rows(query, out)


def by_bytewax_on_batches(query: str, events: Events) -> Answer:
    from nexmark import flows

    made = [batch for _, batch in batches_of(events, query)]
    seconds, out = flows.play(flows.ON_BATCHES, query, made, 1)
    return seconds, of_batches(query, out)


BY: dict[str, Callable[..., Answer]] = {
    "rows": by_rows,
    "batches": by_batches,
    "bytewax": by_bytewax,
    "bytewax_batches": by_bytewax_on_batches,
    "duckdb": by_duckdb,
}
