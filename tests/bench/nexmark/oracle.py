"""The answers of Nexmark's queries, by SQL on the finished streams, and how answers are compared.

The queries are those of the project nexmark/nexmark for Flink. A window is given by its start. q4
is the answer at the end of the streams, and prices are whole cents, so it is exact.
"""

import gc
from collections.abc import Sequence
from time import process_time
from typing import Any

import pyarrow as pa

from nexmark.events import Events

STEP, WINDOW = 2_000, 10_000  # milliseconds: q5's step; the windows of q5, q7 and q8
PANES = WINDOW // STEP
FACTOR = 0.908  # of dollars, in euros
DIVISOR = 123  # of the auctions that q2 wants
STATES = ("OR", "ID", "CA")
CATEGORY = 10

READS = {  # the streams that a query reads
    "q0": ("bid",),
    "q1": ("bid",),
    "q2": ("bid",),
    "q3": ("person", "auction"),
    "q4": ("auction", "bid"),
    "q5": ("bid",),
    "q7": ("bid",),
    "q8": ("person", "auction"),
}
SQL = {
    "q0": "select auction, bidder, price, time, extra from bid",
    "q1": f"select auction, bidder, {FACTOR}::double * price as price, time, extra from bid",
    "q2": f"select auction, price from bid where auction % {DIVISOR} = 0",
    "q3": "select name, city, state, a.id as auction from auction a join person p"
    f" on seller = p.id where category = {CATEGORY} and state in {STATES}",
    "q4": "select category, avg(price) as price from (select a.id, category, max(price) as price"
    " from auction a join bid b on a.id = b.auction and b.time between a.time and a.expires"
    " group by a.id, category) group by category",
    "q5": f"select (time // {STEP} - pane) * {STEP} as start, auction, count(*) as bids"
    f" from bid, range({PANES}) panes(pane) group by start, auction"
    " qualify bids = max(bids) over (partition by start)",
    "q7": f"select time // {WINDOW} * {WINDOW} as start, auction, bidder, price, time"
    " from bid qualify price = max(price) over (partition by start)",
    "q8": f"select distinct p.id as person, name, p.time // {WINDOW} * {WINDOW} as start"
    " from person p join auction a on p.id = seller"
    f" and p.time // {WINDOW} = a.time // {WINDOW}",
}
INTEGER, REAL, TEXT = pa.int64(), pa.float64(), pa.string()
PASSED = {"auction": INTEGER, "bidder": INTEGER, "price": INTEGER, "time": INTEGER, "extra": TEXT}
COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "q0": PASSED,
    "q1": PASSED | {"price": REAL},
    "q2": {"auction": INTEGER, "price": INTEGER},
    "q3": {"name": TEXT, "city": TEXT, "state": TEXT, "auction": INTEGER},
    "q4": {"category": INTEGER, "price": REAL},
    "q5": {"start": INTEGER, "auction": INTEGER, "bids": INTEGER},
    "q7": {"start": INTEGER, "auction": INTEGER, "bidder": INTEGER, "price": INTEGER,
           "time": INTEGER},
    "q8": {"person": INTEGER, "name": TEXT, "start": INTEGER},
}  # fmt: skip
IN_ORDER = ("q0", "q1", "q2")  # the others' outputs are compared in any order


class Clock:
    """The processor time of all of the process's threads, in seconds: what a core would need."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()  # rows that were made beforehand would be looked through again and again
        self.begin = process_time()

    def seconds(self) -> float:
        return process_time() - self.begin


def by_duckdb(query: str, events: Events) -> tuple[float, pa.Table]:
    """Ask DuckDB, on one thread, when all rows are there: from tables of Arrow to one."""
    import duckdb

    tables = {name: getattr(events, name) for name in READS[query]}
    with duckdb.connect(config={"threads": 1}) as base:
        for name, table in tables.items():
            base.register(name, table)
        clock = Clock()
        answer = base.sql(SQL[query]).to_arrow_table()
        return clock.seconds(), answer


def of_rows(query: str, rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Make a table of an answer of Python rows."""
    columns = COLUMNS[query]
    values = zip(*rows, strict=True) if rows else [()] * len(columns)
    arrays = [pa.array(each, kind) for each, kind in zip(values, columns.values(), strict=True)]
    return pa.table(arrays, pa.schema(columns))


def of_batches(query: str, batches: Sequence[pa.RecordBatch]) -> pa.Table:
    schema = pa.schema(COLUMNS[query])
    names = schema.names
    return pa.concat_tables(
        [schema.empty_table(), *(pa.table(each).select(names).cast(schema) for each in batches)]
    )


def comparable(query: str, answer: pa.Table) -> pa.Table:
    """Bring an answer into the form in which equal answers are equal."""
    schema = pa.schema(COLUMNS[query])
    answer = answer.select(schema.names).cast(schema)
    if query not in IN_ORDER:
        answer = answer.sort_by([(name, "ascending") for name in schema.names])
    return answer
