"""Rows and functions for worker processes: of a known cost, without keys and with them, and values.

All functions can be imported, so a process finds them by name, whatever its start method.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

KEYS = 256
NUMBERS = 1_000  # that differ
TURNS = 23  # about a microsecond on CPython 3.11
MEGABYTE = 1 << 20

Row = tuple[int, int]  # a key and a number


@dataclass(frozen=True)
class Work:
    """Rows, and what is done to each: without keys the outputs are `function(row)`.

    With keys they are those of a scan: `(key, total)`, where `function(total, row)` is the total.
    """

    rows: list[Any]
    function: Callable[..., Any]
    chunk: int  # rows that a pool of processes gets at a time
    keyed: bool = False
    digest: Callable[[Any], Any] | None = None  # of an output that is too large to be kept


def loop(work: Work, rows: list[Any]) -> Iterable[Any]:
    """Do the work on this thread."""
    return summed(work.function, rows) if work.keyed else map(work.function, rows)


def summed(function: Callable[[int, Row], int], rows: Iterable[Row]) -> list[Row]:
    totals: dict[int, int] = {}
    outputs = []
    for row in rows:
        key = key_of(row)
        totals[key] = total = function(totals.get(key, 0), row)
        outputs.append((key, total))
    return outputs


def key_of(row: Row) -> int:
    return row[0]


# --- rows of a known cost -------------------------------------------------------------------------


def calculate(turns: int, row: Row) -> int:
    number = row[1]
    for turn in range(turns):
        number = (number * 5 + turn) % 65_521
    return number


def add(turns: int, total: int, row: Row) -> int:
    return total + calculate(turns, row)


def calculation(n: int, microseconds: float, keyed: bool) -> Work:
    """Make rows that take so many microseconds each. A chunk of them takes a few milliseconds."""
    rows = [(place % KEYS, place % NUMBERS) for place in range(n)]
    function = partial(add if keyed else calculate, round(microseconds * TURNS))
    return Work(rows, function, max(8, int(4_096 / microseconds)), keyed)


def expected(work: Work) -> list[Any]:
    """Return the loop's outputs. Rows whose numbers are equal are calculated once."""
    if work.digest:
        return [*map(work.digest, work.rows)]
    if work.function is same:
        return work.rows
    turns: int = work.function.args[0]  # type: ignore[attr-defined]
    calculated = cache(lambda number: calculate(turns, (0, number)))
    if work.keyed:
        return summed(lambda total, row: total + calculated(row[1]), work.rows)
    return [calculated(number) for _, number in work.rows]


# --- values that travel to a process and back -----------------------------------------------------


@dataclass(frozen=True)
class Order:
    number: int
    name: str
    price: float


def same(row: Any) -> Any:
    return row


def tuples(n: int) -> Work:
    return Work([(number % KEYS, number) for number in range(n)], same, 4_096)


def dicts(n: int) -> Work:
    names = (f"order {number}" for number in range(n))
    return Work(
        [{"number": n, "name": name, "price": n / 4} for n, name in enumerate(names)], same, 2_048
    )


def dataclasses(n: int) -> Work:
    return Work([Order(number, f"order {number}", number / 4) for number in range(n)], same, 1_024)


def texts(n: int) -> Work:
    return Work([f"{number:8}" * 128 for number in range(n)], same, 256)


def arrays(n: int) -> Work:
    import numpy as np

    return Work([np.full(MEGABYTE // 8, number) for number in range(n)], same, 1, digest=sampled)


def sampled(array: Any) -> tuple[Any, ...]:
    return (array.shape, str(array.dtype), *array[::16_384].tolist())


def batches(n: int) -> Work:
    """Make Arrow batches of 10,000 rows, 160 KB each."""
    import numpy as np
    import pyarrow

    columns = np.arange(10_000), np.linspace(0.0, 1.0, 10_000)
    names = ["number", "part"]
    rows = [
        pyarrow.record_batch([pyarrow.array(each + number) for each in columns], names)
        for number in range(n)
    ]
    return Work(rows, same, 8, digest=ends)


def ends(batch: Any) -> tuple[Any, ...]:
    first, last = batch.slice(0, 1), batch.slice(batch.num_rows - 1)
    return batch.num_rows, first.to_pylist(), last.to_pylist()


VALUES: dict[str, Callable[[int], Work]] = {
    "tuples": tuples,
    "dicts": dicts,
    "dataclasses": dataclasses,
    "texts": texts,
    "arrays": arrays,
    "batches": batches,
}


# --- keys divided among processes -----------------------------------------------------------------


def divided(rows: Iterable[Row], parts: int) -> list[list[Row]]:
    """Divide rows by their keys into as many lists as there are processes."""
    lists: list[list[Row]] = [[] for _ in range(parts)]
    for row in rows:
        lists[key_of(row) % parts].append(row)
    return lists


def merged(rows: Iterable[Row], outputs: Iterable[list[Any]]) -> Iterator[Any]:
    """Merge the outputs of all lists in the order of the rows."""
    parts = [iter(each) for each in outputs]
    for row in rows:
        yield next(parts[key_of(row) % len(parts)])
