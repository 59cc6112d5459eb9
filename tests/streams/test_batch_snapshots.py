"""Snapshots of joins and merges of Arrow batches at random cuts."""

from __future__ import annotations

import struct
import zlib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import Equal, Graph, Snapshot, SnapshotError, entry
from callboard.testing import ManualSystem
from tests.streams.batch_cases import (
    CHOICES,
    CLOCKS,
    NAMES,
    Case,
    batch,
    both,
    cases,
    joins,
    options,
    pa,
    rows_in,
    schema_of,
    sizes,
    windows,
)
from tests.streams.cutting import run_in_parts

HEAD = struct.Struct("!10sHIQ")

cuts = st.lists(st.integers(0, 12), min_size=1, max_size=3)
seeds = st.integers(0, 10_000)
ways = st.lists(
    st.fixed_dictionaries(
        {"batch_size": st.sampled_from([1, 2]), "window": st.sampled_from([1, 2, 16])}
    ),
    min_size=2,
    max_size=2,
)


def in_parts(graph: Graph[Any], case: Case, cuts: list[int], ways: list[Any], seed: int) -> Any:
    return run_in_parts(graph, case.batches, cuts, lambda part: ManualSystem(seed + part), ways)


@given(st.data(), sizes, st.sampled_from([0, 3]), cuts, ways, seeds)
def test_a_merge_of_batches_goes_on_where_it_was_cut(
    data: st.DataObject, n: int, delay_threshold: int, cuts: list[int], ways: list[Any], seed: int
) -> None:
    clock = data.draw(st.sampled_from(CLOCKS))
    case = data.draw(cases(clock, 3))
    first, *others = map(entry, NAMES)
    lags: dict[str, Any] = (
        {"delay_threshold": clock.length(delay_threshold)} if delay_threshold else {}
    )
    graph = both(first.merge_batches(*others, by="time", n=n, late="side", **lags))
    expected = graph.run_sequentially(case.batches)
    assert in_parts(graph, case, cuts, ways, seed) == expected


@settings(max_examples=2 * settings().max_examples)
@given(st.data(), st.sampled_from(CHOICES), windows, options, cuts, ways, seeds)
def test_a_join_of_batches_goes_on_where_it_was_cut(
    data: st.DataObject,
    choice: Any,
    window: dict[str, Any],
    options: dict[str, Any],
    cuts: list[int],
    ways: list[Any],
    seed: int,
) -> None:
    clock = data.draw(st.sampled_from(CLOCKS))
    case = data.draw(cases(clock, key=data.draw(st.sampled_from([None, pa.large_binary()]))))
    n, delay_threshold = data.draw(sizes), data.draw(st.sampled_from([0, 3]))
    graph = both(joins(choice, clock, n, delay_threshold, case.schemas, **window, **options)[0])
    expected = graph.run_sequentially(case.batches)
    assert in_parts(graph, case, cuts, ways, seed) == expected


@pytest.mark.parametrize("lanes", [1, 3])
@given(st.data(), st.sampled_from([(0, 4), 4]), cuts, seeds)
def test_rows_whose_function_raised_are_left_out_behind_a_cut_too(
    lanes: int, data: st.DataObject, within: Any, cuts: list[int], seed: int
) -> None:
    def picky(row: dict[str, Any], others: Any) -> Any:
        if row["number"] % 3 == 1:
            raise ValueError(row["number"])
        return [True] * len(others)

    case = data.draw(cases(CLOCKS[0]))
    joined = entry("a").join_batches(
        entry("b"),
        by="time",
        within=within,
        where=picky,
        how="outer",
        n=2,
        lanes=lanes,
        errors="side",
        schemas=(schema_of(CLOCKS[0]), schema_of(CLOCKS[0])),
    )
    failed = joined.side("failures").map(lambda failure: (failure.serial, rows_in([failure.row])))
    graph = Graph(joined.collect(name="all"), failed.collect(name="failed"))
    expected = graph.run_sequentially(case.batches)
    assert in_parts(graph, case, cuts, [{"batch_size": 1}], seed) == expected


@given(st.data(), cuts, st.integers(1, 3))
def test_a_join_of_batches_on_threads_goes_on_where_it_was_cut(
    data: st.DataObject, cuts: list[int], workers: int
) -> None:
    case = data.draw(cases(CLOCKS[0]))
    graph = both(joins(CHOICES[5], CLOCKS[0], 3, 0, case.schemas, within=9, how="left", lanes=2)[0])
    expected = graph.run_sequentially(case.batches)
    got = run_in_parts(
        graph, case.batches, cuts, lambda part: ActorSystem(workers=workers), [{"batch_size": 1}]
    )
    assert got == expected


def test_columns_that_are_said_behind_the_cut_are_known_then() -> None:
    def graph(schemas: Any) -> Graph[Any]:
        a, b = entry("a"), entry("b")
        return a.join_batches(b, by="t", within=5, how="left", n=1, schemas=schemas).collect()

    with ManualSystem() as system:
        run = system.run(graph(None))
        run.send("a", [batch(t=[1, 20])])
        snapshot = Snapshot.from_bytes(run.snapshot().to_bytes())
        run.cancel()
    with ManualSystem() as system:
        schema = pa.schema({"t": pa.int64()})
        run = system.run(graph((schema, schema)), restore=snapshot)
        assert rows_in(run.finish()) == [{"t": t, "t_right": None} for t in (1, 20)]


def test_a_window_of_many_rows_and_texts_goes_on_with_the_same_partners() -> None:
    def some(begin: int, end: int) -> Any:
        numbers = range(begin, end)
        return batch(t=[*numbers], key=[f"key {n % 9_001}" for n in numbers], n=[*numbers])

    graph = (
        entry("a")
        .join_batches(entry("b"), by="t", within=10**6, where=Equal("key"), n=1_000, lanes=2)
        .collect()
    )
    inputs = [(name, [some(at, at + 5_000)]) for at in range(0, 20_000, 5_000) for name in "ab"]
    expected = graph.run_sequentially(inputs)
    got = run_in_parts(graph, inputs, [5], lambda part: ActorSystem(workers=2), [{}])
    assert got == expected
    assert sum(map(len, got)) > 40_000


def test_batches_are_rows_that_any_operator_keeps_through_a_snapshot() -> None:
    graph: Graph[Any] = entry("rows").batch(3).collect()
    words = pa.array(["x", None, "x"]).dictionary_encode()
    given = [batch(n=[1, 2, 3], words=words), batch(n=[4]).slice(1)]
    with ManualSystem() as system:
        run = system.run(graph)
        run.send("rows", given)
        snapshot = Snapshot.from_bytes(run.snapshot().to_bytes())
        run.cancel()
    with ManualSystem() as system:
        ((*got,),) = system.run(graph, restore=snapshot).finish()
    assert got == given


def test_batches_whose_types_are_not_read_here_are_not_saved(manual: ManualSystem) -> None:
    union = pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])])
    run = manual.run(entry("rows").batch(2).collect())
    run.send("rows", [pa.RecordBatch.from_arrays([union], ["u"])])
    with pytest.raises(SnapshotError, match="column 'u' has the type sparse_union"):
        run.snapshot()
    run.cancel()


def test_a_batch_of_nulls_alone_goes_on_in_a_snapshot(manual: ManualSystem) -> None:
    """It has more rows than its bytes have bits, and what a run saved itself may be so."""
    graph = entry("rows").batch(2).collect()
    nulls = pa.RecordBatch.from_arrays([pa.nulls(1_000_000)], ["n"])
    run = manual.run(graph)
    run.send("rows", [nulls])
    data = run.snapshot().to_bytes()
    run.cancel()
    run = manual.run(graph, restore=Snapshot.from_bytes(data))
    assert run.finish() == [[nulls]]


def test_a_saved_batch_whose_values_lie_elsewhere_is_an_error(manual: ManualSystem) -> None:
    """The checksum fits: it says that a file is whole, and not who wrote it."""
    graph = entry("rows").batch(2).collect()
    run = manual.run(graph)
    run.send("rows", [pa.RecordBatch.from_arrays([pa.array([["a"], ["b"]])], ["texts"])])
    data = run.snapshot().to_bytes()
    run.cancel()
    magic, version, _, size = HEAD.unpack_from(data)
    offsets = struct.pack("<3i", 0, 1, 2)
    assert data.count(offsets) == 2
    body = data[HEAD.size :].replace(offsets, struct.pack("<3i", 0, 1, 1 << 30))
    broken = HEAD.pack(magic, version, zlib.crc32(body, version), size) + body
    with pytest.raises(SnapshotError, match="operator 'batch' cannot continue from its state"):
        manual.run(graph, restore=Snapshot.from_bytes(broken))
