"""Map, filter and a count for each key, in Python: by a graph, by generators, by Bytewax."""

from collections.abc import Callable, Iterable, Iterator
from time import perf_counter
from typing import Any

from callboard.streams import entry
from savina.result import Result
from streams.timing import timed

KEYS = 100

Counts = list[tuple[Any, int]]


def scale(row: int) -> int:
    return row * 3 + 1


def is_kept(row: int) -> bool:
    return row % 4 != 0


def key_of(row: int) -> int:
    return row % KEYS


def run(n: int, *, by: str = "graph", batch_size: int = 512) -> Result:
    rows = list(range(n))
    want = list(counted(filter(is_kept, map(scale, rows)), key_of))
    seconds, got = BY[by](rows, batch_size)
    return Result(n, seconds, got=hash(tuple(got)), want=hash(tuple(want)))


def by_graph(rows: list[int], batch_size: int) -> tuple[float, Counts]:
    graph = entry("rows").map(scale).filter(is_kept).key_by(key_of).count().collect()
    return timed(graph, [("rows", rows)], batch_size=batch_size)


def by_generators(rows: list[int], _: int) -> tuple[float, Counts]:
    begin = perf_counter()
    scaled = (scale(row) for row in rows)
    kept = (row for row in scaled if is_kept(row))
    got = list(counted(kept, key_of))
    return perf_counter() - begin, got


def counted(rows: Iterable[int], key: Callable[[int], int]) -> Iterator[tuple[int, int]]:
    counts: dict[int, int] = {}
    for row in rows:
        of = key(row)
        counts[of] = count = counts.get(of, 0) + 1
        yield of, count


def by_bytewax(rows: list[int], batch_size: int) -> tuple[float, Counts]:
    """Count with Bytewax, whose keys are strings, so one is made of each."""
    import bytewax.operators as op
    from bytewax.dataflow import Dataflow
    from bytewax.testing import TestingSink, TestingSource, run_main

    def count(state: int | None, _: int) -> tuple[int, int]:
        state = (state or 0) + 1
        return state, state

    got: list[tuple[str, int]] = []
    flow = Dataflow("counts")
    stream = op.input("rows", flow, TestingSource(rows, batch_size))
    kept = op.filter("is_kept", op.map("scale", stream, scale), is_kept)
    keyed = op.key_on("key", kept, lambda row: str(row % KEYS))
    op.output("got", op.stateful_map("count", keyed, count), TestingSink(got))
    begin = perf_counter()
    run_main(flow)
    seconds = perf_counter() - begin
    return seconds, in_order_of_arrival(rows, got)


def in_order_of_arrival(rows: list[int], got: list[tuple[str, int]]) -> Counts:
    """Merge the outputs of Bytewax, which come key by key, each key's in order."""
    of_key: dict[str, Iterator[int]] = {}
    for key in {key for key, _ in got}:
        of_key[key] = iter([count for each, count in got if each == key])
    kept = filter(is_kept, map(scale, rows))
    return [(key, next(of_key[str(key)])) for key in map(key_of, kept)]


BY = {"graph": by_graph, "generators": by_generators, "bytewax": by_bytewax}
