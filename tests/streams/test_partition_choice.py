"""Partitions of keys as specified by a graph: by ranges, or by a function."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import Graph, GraphError, Run, StreamError, TumblingWindow, Watermark, entry
from callboard.streams.native import NativeOperator
from callboard.testing import ManualSystem
from tests.streams.counting import counted, rows_of_partitions


def test_ranges_of_keys_are_partitions() -> None:
    rows = [0, 9, 10, 19, 19, 20, 1000, -5]
    with ActorSystem(workers=2) as system:
        run = system.run(counted([10, 20]))
        run.send("rows", rows)
        got = run.finish()
        assert rows_of_partitions(run) == (3, 3, 2)
    assert got == counted(None).run_sequentially({"rows": rows})


keys = st.lists(st.one_of(st.integers(-30, 30), st.integers(-30, 30).map(float), st.just(2**70)))
bounds = st.lists(st.integers(-30, 30), min_size=1, unique=True).map(sorted)


@given(keys, bounds, st.integers(-9, 9), st.integers(1, 9), st.integers(0, 1000))
def test_outputs_do_not_depend_on_where_keys_are(
    rows: list[int], bounds: list[int], factor: int, partitions: int, seed: int
) -> None:
    want = counted(None).run_sequentially({"rows": rows})
    ways = [counted(bounds), counted(lambda key: int(key) * factor - 5, partitions=partitions)]
    for graph in ways:
        assert graph.run_sequentially({"rows": rows}) == want
        for system in (ManualSystem(seed), ActorSystem(workers=1), ActorSystem(workers=2)):
            with system:
                run = system.run(graph, batch_size=4)
                run.send("rows", rows)
                assert run.finish(timeout=60) == want
                assert sum(rows_of_partitions(run)) in (0, len(rows))


class Whole:
    """A number of another class, as NumPy's are."""

    def __index__(self) -> int:
        return -64


@pytest.mark.parametrize("answer", [64, -64, 2**70, Whole()])
def test_a_partition_is_any_whole_number_modulo_their_number(answer: Any) -> None:
    with ActorSystem(workers=2) as system:
        run = system.run(counted(lambda key: answer))
        run.send("rows", [1, 2, 1])
        assert run.finish() == [(1, 1), (2, 1), (1, 2)]
        assert rows_of_partitions(run) == (3, *[0] * 63)


# --- errors of rows ------------------------------------------------------------------------------


def send_and_finish(run: Run[Any], rows: list[Any]) -> None:
    """Raise the run's error, which may come before all rows are in."""
    run.send("rows", rows)
    run.finish(timeout=60)


def fails_at_the_third_row(graph: Graph[Any], rows: list[Any], message: str) -> None:
    """Check that a run fails there, whether the rows are divided or not."""
    for system in (ManualSystem(), ActorSystem(workers=1), ActorSystem(workers=2)):
        with system:
            run = system.run(graph)
            with pytest.raises(StreamError, match="'count'") as raised:
                send_and_finish(run, rows)
        assert raised.value.serial == 2
        assert message in str(raised.value.__cause__)


async def answers_later(key: Any) -> int:
    return 0


@pytest.mark.parametrize("answer", [1.5, 1.0, float("nan"), None, True, "1", b"1", [1]])
def test_a_partition_is_a_whole_number(answer: Any) -> None:
    graph = counted(lambda key: answer if key == 3 else 0)
    fails_at_the_third_row(graph, [1, 2, 3, 4], "a key's partition must be a whole number, got")


def test_a_partition_that_is_a_coroutine_is_an_error_of_the_row() -> None:
    graph = counted(lambda key: answers_later(key) if key == 3 else 0)
    fails_at_the_third_row(graph, [1, 2, 3, 4], "coroutine")


@pytest.mark.parametrize("key", [None, "12", (12,), 1j])
def test_a_key_that_cannot_be_compared_with_the_bounds_is_an_error_of_the_row(key: Any) -> None:
    fails_at_the_third_row(counted([10, 20]), [1, 2, key, 4], "'<' not supported")


@pytest.mark.parametrize("partition", [None, [10, 20], lambda key: 0])
def test_a_key_that_is_not_a_number_is_an_error_of_the_row(partition: Any) -> None:
    rows = [1.0, 2.0, float("nan"), 4.0]
    fails_at_the_third_row(counted(partition), rows, "a key must be equal to itself")


def test_equal_keys_in_two_partitions_are_an_error_of_one_of_their_rows() -> None:
    """It is the row to which a worker comes second: partitions have no common order."""
    graph = counted(lambda key: int(type(key) is float))
    for workers in (1, 2):
        with ActorSystem(workers=workers) as system:
            run = system.run(graph)
            with pytest.raises(StreamError, match="'count'") as raised:
                send_and_finish(run, [1, 2, 2.0, 3.0])
        assert raised.value.serial in (1, 2)
        found = "2 has 1 and 0" if raised.value.serial == 1 else "2.0 has 0 and 1"
        message = f"equal keys have one partition, and {found}"
        assert message in str(raised.value.__cause__)


def test_a_key_that_was_forgotten_may_come_again_in_another_partition() -> None:
    calls: list[int] = []

    def next_partition(key: int) -> int:
        calls.append(key)
        return len(calls)

    keyed = entry("rows").key_by(lambda row: row // 100, partition=next_partition)
    graph = keyed.window(TumblingWindow(10, by=lambda row: row % 100), len).collect()
    for system in (ManualSystem(), ActorSystem(workers=1)):
        with system:
            run = system.run(graph, batch_size=1, window=1)
            run.send("rows", [101, Watermark(10), 111, Watermark(20), 121])
            assert [window.start for _, window in run.finish(timeout=60)] == [0, 10, 20]


# --- errors of graphs ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"partition": 5}, "a function or a list of bounds, got 5"),
        ({"partition": "abc"}, "a function or a list of bounds, got 'abc'"),
        ({"partition": {1, 2}}, "a function or a list of bounds, got {1, 2}"),
        ({"partition": {1: 2}}, "a function or a list of bounds, got {1: 2}"),
        ({"partition": answers_later}, "got an async one"),
        ({"partition": []}, "1 to 4095 bounds, got 0"),
        ({"partition": [3] * 4096}, "1 to 4095 bounds, got 4096"),
        ({"partition": [2, 1]}, r"bounds must ascend, got \[2, 1\]"),
        ({"partition": [1, 1]}, "bounds must ascend"),
        ({"partition": [float("nan")]}, "bounds must ascend"),
        ({"partition": [1, float("nan"), 3]}, "bounds must ascend"),
        ({"partition": [1, "a"]}, "cannot be compared"),
        ({"partition": [1, 2], "partitions": 2}, "2 bounds make 3 partitions, got 2"),
        ({"partitions": 0}, "partitions must be a whole number from 1 to 4096, got 0"),
    ],
)
def test_a_partitioning_that_cannot_be_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        entry("rows").key_by(lambda row: row, **options)


def test_partitions_without_a_key_are_refused() -> None:
    rows: Any = entry("rows")
    with pytest.raises(TypeError, match="'function'"):
        rows.key_by(partition=[1])
    with pytest.raises(TypeError, match="'partition'"):
        rows.count(partition=[1])
    with pytest.raises(GraphError, match=r"come from its key_of\(\)"):
        rows.native(NativeOperator, partitions=4, partition=[1])
