"""Errors at the end of a stream: named and numbered alike in every way to run a graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.streams import (
    FailedRow,
    Graph,
    RowCounts,
    SessionWindow,
    Stream,
    StreamError,
    TumblingWindow,
    entry,
)
from callboard.testing import ManualSystem

Build = Callable[[Any], Graph[Any]]


class Refusing:
    """Raises at the end."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def receive(self, row: Any) -> list[Any]:
        self.rows.append(row)
        return [row]

    def on_final(self) -> list[Any]:
        raise ValueError(f"{len(self.rows)} rows")


def refuse(rows: list[Any]) -> Any:
    raise ValueError(f"{len(rows)} rows")


def time_of(row: Any) -> Any:
    return row[0] if isinstance(row, tuple) else row


def read(stream: Stream[Any]) -> Stream[Any]:
    """A stream with its operator's failures, if those are a side output."""
    return stream.union(stream.failures) if "failures" in stream._outlet.operator.ports else stream


def directly(errors: Any) -> Graph[Any]:
    return read(entry("a").stateful(Refusing, errors=errors)).collect()


def after_others(errors: Any) -> Graph[Any]:
    chain = entry("a").filter(lambda row: row % 3 > 0).flat_map(lambda row: [row, row])
    return read(chain.stateful(Refusing, errors=errors)).map(str).collect()


def by_key(errors: Any) -> Graph[Any]:
    keyed = entry("a").key_by(lambda row: row % 5, partitions=4)
    return read(keyed.stateful(Refusing, errors=errors, releases_gil=True)).collect()


def in_branches(errors: Any) -> Graph[Any]:
    rows = entry("a")
    odd = rows.filter(lambda row: row % 2 > 0).stateful(Refusing, errors=errors)
    return read(rows.stateful(Refusing, errors=errors)).union(read(odd)).collect()


def after_joins(errors: Any) -> Graph[Any]:
    left, right = entry("a"), entry("b")
    zipped = left.zip(right).stateful(Refusing, errors=errors)
    merged = left.union(right, by=time_of).stateful(Refusing, errors=errors)
    return Graph(read(zipped).collect(name="zipped"), read(merged).collect(name="merged"))


def at_each_of_two_entries(errors: Any) -> Graph[Any]:
    ends = [read(entry(name).stateful(Refusing, errors=errors)) for name in "ab"]
    return ends[0].union(ends[1]).collect()


def in_windows(errors: Any) -> Graph[Any]:
    rows = entry("a").map(lambda row: row)
    counts = rows.window(TumblingWindow(100), refuse, errors=errors)
    times = entry("b").window(TumblingWindow(100, by=time_of), refuse, errors=errors)
    keyed = rows.key_by(lambda row: row % 3, partitions=3)
    sessions = keyed.window(SessionWindow(100, time_of), refuse, errors=errors)
    return read(counts).union(read(times), read(sessions)).collect()


def in_lists(errors: Any) -> Graph[Any]:
    return read(entry("a").reduce(refuse, every=100, errors=errors)).collect()


def after_a_failure_on_the_way(errors: Any) -> Graph[Any]:
    halves = entry("a").map(lambda row: 1 // (row - 7), errors="skip")
    return read(halves.stateful(Refusing, errors=errors)).collect()


GRAPHS = [
    directly, after_others, by_key, in_branches, after_joins, at_each_of_two_entries, in_windows,
    in_lists, after_a_failure_on_the_way,
]  # fmt: skip
INPUTS = [("a", range(10)), ("b", range(5, 12)), ("a", range(10, 13))]


def known(failure: FailedRow | StreamError) -> Any:
    error = failure.__cause__ if isinstance(failure, StreamError) else failure.error
    return failure.operator, failure.serial, failure.row, repr(error)


def outcome(graph: Graph[Any], run: Callable[[Graph[Any], RowCounts | None], Any]) -> Any:
    """Run a graph: what came out, and what is known of its failures."""
    try:
        result, counts = run(graph, RowCounts())
    except StreamError as error:
        return known(error)
    return repr(result), sorted(map(known, counts.failures))


def in_sequence(graph: Graph[Any], counts: Any) -> Any:
    inputs = [(name, rows) for name, rows in INPUTS if name in graph.entries]
    return graph.run_sequentially(inputs, row_counts=counts), counts


def in_system(system: ActorSystem, **options: Any) -> Callable[[Graph[Any], Any], Any]:
    def run(graph: Graph[Any], _: Any) -> Any:
        with system:
            running = system.run(graph, **options)
            for name, rows in INPUTS:
                if name in graph.entries:
                    running.send(name, rows)
            return running.finish(), running.row_counts

    return run


@pytest.mark.parametrize("errors", ["fail", "skip", "side"])
@pytest.mark.parametrize("build", GRAPHS)
def test_an_error_at_the_end_has_one_serial_number(build: Build, errors: str) -> None:
    expected = outcome(build(errors), in_sequence)
    for seed in range(5):
        assert outcome(build(errors), in_system(ManualSystem(seed), batch_size=2)) == expected
    for workers in (1, 3):
        assert outcome(build(errors), in_system(ActorSystem(workers=workers))) == expected
