"""Native operators in graphs, alone and with Python ones, against sequential runs."""

from __future__ import annotations

import struct
from itertools import pairwise
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import Actor, ActorSystem
from callboard.native import NativeFailure, NativeRecord, Tagged
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.streams import (
    Graph,
    GraphError,
    RowCounts,
    Run,
    Snapshot,
    SnapshotError,
    StreamError,
    entry,
)
from callboard.testing import ManualSystem

ROWS = list(range(3000))


def run(graph: Graph[Any], workers: int, **options: Any) -> Any:
    with ActorSystem(workers=workers) as system:
        run = system.run(graph, **options)
        run.send("x", ROWS)
        return run.finish(timeout=60)


def mixed(operators: ModuleType) -> Graph[Any]:
    """From Python to native and back, twice, with a keyed native operator and a stateful one."""
    return (
        entry("x", int)
        .map(lambda n: n + 1)
        .native(operators.Twice)
        .native(operators.Total, partitions=8)
        .filter(lambda n: n % 3 != 0)
        .native(operators.Total)
        .collect()
    )


@pytest.mark.parametrize("batch_size", [1, 13, 256])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_a_mixed_graph_gives_what_it_gives_in_sequence(
    operators: ModuleType, workers: int, batch_size: int
) -> None:
    graph = mixed(operators)
    expected = graph.run_sequentially({"x": ROWS}, batch_size=7)
    assert run(graph, workers, batch_size=batch_size, window=8) == expected


@pytest.mark.parametrize("seed", range(5))
def test_a_mixed_graph_is_equal_in_any_interleaving(operators: ModuleType, seed: int) -> None:
    graph = mixed(operators)
    with ManualSystem(seed) as system:
        run = system.run(graph, batch_size=50, window=4)
        run.send("x", ROWS)
        assert run.finish() == graph.run_sequentially({"x": ROWS})


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("model", MODELS)
def test_a_mixed_graph_gives_the_same_by_every_threading_model(
    operators: ModuleType, model: Model, workers: int
) -> None:
    graph = mixed(operators)
    expected = graph.run_sequentially({"x": ROWS})
    assert run(graph, workers, threading=model, batch_size=13, window=4) == expected
    with ManualSystem(workers) as system:
        manual = system.run(graph, threading=model, batch_size=50, window=4)
        manual.send("x", ROWS)
        assert manual.finish() == expected


@pytest.mark.parametrize("model", MODELS)
def test_a_keyed_native_fails_at_its_row_by_any_model(operators: ModuleType, model: Model) -> None:
    graph = entry("x", int).native(operators.Total, partitions=4).map(lambda n: 1 // (n - 45))
    with pytest.raises(StreamError) as expected:
        graph.collect().run_sequentially({"x": ROWS})
    with pytest.raises(StreamError) as raised:
        run(graph.collect(), 2, threading=model, batch_size=13)
    assert str(raised.value) == str(expected.value)


def test_a_native_operator_computes(operators: ModuleType) -> None:
    graph = entry("x").native(operators.Twice).native(operators.Even).collect()
    assert run(graph, 2) == [2 * n for n in ROWS]


def test_a_stateful_one_emits_at_the_end_what_it_holds(operators: ModuleType) -> None:
    assert run(entry("x").native(operators.Total).collect(), 2)[-1] == -sum(ROWS)


def test_a_keyed_one_has_an_object_for_each_partition(operators: ModuleType) -> None:
    result = run(entry("x").native(operators.Total, partitions=4).collect(), 2)
    assert len(result) == len(ROWS) + 4
    assert -sum(result[-4:]) == sum(ROWS)


@pytest.mark.parametrize("workers", [1, 2])
def test_statistics_have_the_rows_of_each_partition(operators: ModuleType, workers: int) -> None:
    graph = entry("x").native(operators.Total, partitions=4, name="total").collect()
    with ActorSystem(workers=workers) as system:
        run = system.run(graph, batch_size=64)
        run.send("x", ROWS)
        run.finish(timeout=60)
        total = [each for each in run.statistics().operators if each.name == "total"][-1]
    rows = [partition.rows for partition in total.partitions]
    assert sum(rows) == len(ROWS)
    assert total.busiest == max(rows) / len(ROWS)
    assert all(partition.busy > 0.0 for partition in total.partitions)


def test_an_output_for_two_readers_goes_to_both(operators: ModuleType) -> None:
    doubled = entry("x").native(operators.Twice)
    graph = Graph(
        doubled.native(operators.Even).collect(name="native"),
        doubled.map(lambda n: n + 1).collect(name="python"),
    )
    result = run(graph, 2)
    assert result == {"native": [2 * n for n in ROWS], "python": [2 * n + 1 for n in ROWS]}


def test_values_of_each_kind_come_back_as_they_went(operators: ModuleType) -> None:
    rows = [1, -2.5, NativeRecord(struct.pack("<qd", 7, 0.5)), Tagged(3, 4), Tagged(9, 1.0)]
    with ActorSystem(workers=2) as system:
        run = system.run(entry("x").native(operators.Costly).collect())
        run.send("x", [*rows, b"bytes"])
        *result, memory = run.finish(timeout=60)
    assert bytes(memory) == b"bytes"
    assert [each.value if isinstance(each, Tagged) else each for each in result] == [
        each.value if isinstance(each, Tagged) else each for each in rows
    ]
    assert [each.tag for each in result if isinstance(each, Tagged)] == [3, 9]


def test_more_outputs_than_inputs_are_all_there(operators: ModuleType) -> None:
    graph = entry("x").native(operators.Costly, 0, 50).collect()
    assert run(graph, 2) == [n for n in ROWS for _ in range(50)]


def test_a_failure_ends_the_run_after_what_came_before_it(operators: ModuleType) -> None:
    got: list[int] = []
    graph = entry("x").native(operators.FailsAt, 1000).to(got.append)
    with pytest.raises(StreamError, match="'FailsAt' failed") as raised:
        run(graph, 2, batch_size=10)
    assert isinstance(raised.value.__cause__, NativeFailure)
    assert str(raised.value.__cause__) == "this is the one"
    assert got == list(range(1000))


def test_a_failing_keyed_operator_lets_no_later_row_through(operators: ModuleType) -> None:
    got: list[int] = []
    graph = entry("x").native(operators.FailsAt, 1000, partitions=8).to(got.append)
    with pytest.raises(StreamError, match="'FailsAt' failed"):
        run(graph, 2)
    assert got == list(range(1000))


def send_and_finish(run: Run[Any], rows: list[Any]) -> None:
    run.send("x", rows)  # which raises the run's error if the last batch comes too late
    run.finish(timeout=60)


@pytest.mark.parametrize("how", ["at-the-entry", "behind-python", "behind-native"])
@pytest.mark.parametrize("row", [None, "two", 2**70])
def test_a_non_native_row_is_named(operators: ModuleType, row: object, how: str) -> None:
    rows = [*range(20), row, 3]
    stream = entry("x")
    if how == "behind-python":
        stream = stream.map(lambda row: row)
    if how == "behind-native":
        rows = [2 * row if isinstance(row, int) and row < 99 else row for row in rows]
        stream = stream.native(operators.Twice).map({2 * n: n for n in rows[:20]}.get)
        rows[20:] = [1000]  # the operator in between makes None of it
        row = None
    graph = stream.native(operators.Even, name="even").collect()

    def checked(error: StreamError) -> None:
        assert (error.operator, error.serial, error.row) == ("even", 20, row)
        assert type(error.__cause__) is (ValueError if row == 2**70 else TypeError)

    with pytest.raises(StreamError) as raised:
        graph.run_sequentially({"x": rows}, batch_size=7)
    checked(raised.value)
    for workers in (1, 2):
        with ActorSystem(workers=workers) as system:
            started = system.run(graph, batch_size=7)
            with pytest.raises(StreamError) as raised:
                send_and_finish(started, rows)
            checked(raised.value)


def test_a_wrong_native_operator_is_refused_when_the_graph_is_built() -> None:
    with pytest.raises(GraphError, match="expects a subclass of NativeOperator, got <class 'int'>"):
        entry("x").native(int)  # type: ignore[arg-type]


def test_native_operators_row_by_row_at_a_union_are_refused(operators: ModuleType) -> None:
    source = entry("x")
    with pytest.raises(GraphError, match="receives many rows at once"):
        source.native(operators.Twice).union(source.map(lambda n: n)).collect()


def test_a_native_sink_gets_all_rows_but_non_native_values(behaviours: ModuleType) -> None:
    seen: list[int] = []
    counts = RowCounts()
    with ManualSystem() as system:
        echo = system.spawn(behaviours.Echo, system.spawn(Keeper, seen))
        entry("x").to(echo, errors="skip").run_sequentially({"x": [1, "two", 3]}, row_counts=counts)
        system.run_until_idle()
    assert seen == [1, 3]
    assert [failure.row for failure in counts.failures] == ["two"]


class Keeper(Actor[int]):
    def __init__(self, seen: list[int]) -> None:
        self.seen = seen

    def receive(self, message: int) -> None:
        self.seen.append(message)


@pytest.mark.parametrize(
    ("cls", "options", "said"),
    [
        ("Total", {}, r"'Total' is native and stateful, and Total has no snapshot\(\) and"),
        ("Even", {"partitions": 2}, "operator 'Even' is native and partitioned, and Even has no"),
        ("OneWayTotal", {}, r"OneWayTotal has snapshot\(\), and no restore\(\) to take that back"),
        ("SavedTotal", {"partitions": 2}, "must return a dict of keys and states, got b'"),
    ],
)
def test_a_native_operator_whose_state_cannot_be_saved_is_named(
    operators: ModuleType, cls: str, options: dict[str, Any], said: str
) -> None:
    with ManualSystem() as system:
        run = system.run(entry("x").native(getattr(operators, cls), **options).collect())
        with pytest.raises(SnapshotError, match=said):
            run.snapshot()
        run.cancel()


@given(
    rows=st.lists(st.integers(-300, 300), max_size=60),
    cuts=st.lists(st.integers(0, 60), min_size=1, max_size=3),
    partitions=st.lists(st.sampled_from([1, 3, 8]), min_size=4, max_size=4),
    seed=st.integers(0, 1_000),
)
def test_native_operators_go_on_where_a_run_was_cut_with_other_partitions_too(
    operators: ModuleType, rows: list[int], cuts: list[int], partitions: list[int], seed: int
) -> None:
    def graph(partitions: int) -> Graph[Any]:
        stream = entry("x", int).native(operators.Twice).native(operators.SavedTotal)
        return stream.native(operators.SavedSums, partitions=partitions).collect()

    places = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    saved: Snapshot | None = None
    for part, (begin, end) in enumerate(pairwise(places)):
        with ManualSystem(seed + part) as system:
            run = system.run(graph(partitions[part]), restore=saved, batch_size=7)
            run.send("x", rows[begin:end])
            saved = Snapshot.from_bytes(run.snapshot().to_bytes())
            if part == len(cuts):
                assert run.finish() == graph(4).run_sequentially({"x": rows})
            else:
                run.cancel()
