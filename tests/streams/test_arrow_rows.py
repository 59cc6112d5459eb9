"""Rows that become Arrow batches: all columns, and each row that has no place in its batch."""

from __future__ import annotations

from typing import Any

import pytest

from callboard import ActorSystem
from callboard.streams import Graph, StreamError, Tally, Watermark, entry
from callboard.streams.errors import GraphError

pa = pytest.importorskip("pyarrow")

rows = entry("rows")


def batches_of(given: list[Any], size: int, schema: Any = None, **options: Any) -> list[Any]:
    found = rows.to_arrow(size, schema).collect().run_sequentially({"rows": given}, **options)
    return [batch.to_pylist() for batch in found]


@pytest.mark.parametrize("batch_size", [1, 2, 256])
def test_a_batch_has_the_columns_that_any_of_its_rows_has(batch_size: int) -> None:
    given = [{"a": 1}, {"a": 2, "b": 9}, {}, {"c": "x", "a": 3}]
    assert batches_of(given, 4, batch_size=batch_size) == [
        [
            {"a": 1, "b": None, "c": None},
            {"a": 2, "b": 9, "c": None},
            {"a": None, "b": None, "c": None},
            {"a": 3, "b": None, "c": "x"},
        ]
    ]


def test_with_a_schema_a_batch_has_its_columns() -> None:
    schema = pa.schema([("b", pa.int8()), ("a", pa.int8())])
    given = [{"a": 1}, {"a": 2, "b": 9, "c": 3}, (5, 6)]
    assert batches_of(given, 9, schema) == [
        [{"b": None, "a": 1}, {"b": 9, "a": 2}, {"b": 5, "a": 6}]
    ]


BAD = [
    ([{"a": 1}, {"a": "x"}, {"a": 3}, {"a": 2.5}, {"a": 5}, {"a": 6}], None, [1]),
    ([{"a": 1}, (1, 2), {"a": 3}, {1: 2}, {"a": object()}, {"a": 6}], None, [1, 3, 4]),
    ([{}, {}, {}, {"a": 1}], None, [0, 1, 2]),
    (
        [(1, 2), (1, 300), (1,), {"a": "x"}, "no", (5, 6)],
        [("a", "int8"), ("b", "int8")],
        [1, 2, 3, 4],
    ),
    ([{"a": 2**70}, {"a": 1}], None, [0]),
]


@pytest.mark.parametrize(("given", "fields", "bad"), BAD)
def test_each_bad_row_is_counted_and_the_batch_has_the_others(
    given: list[Any], fields: Any, bad: list[int]
) -> None:
    tally = Tally()
    schema = None if fields is None else pa.schema([(name, getattr(pa, t)()) for name, t in fields])
    stream = rows.to_arrow(3, schema, errors="skip")
    found = stream.collect().run_sequentially({"rows": given}, tally=tally)
    assert [(each.serial, each.row) for each in tally.failures] == [(n, given[n]) for n in bad]
    assert sum(batch.num_rows for batch in found) + len(bad) == len(given)


def test_bad_rows_go_to_the_side_output_each_by_its_number() -> None:
    stream = rows.to_arrow(3, errors="side")
    graph = Graph(stream.collect(name="good"), stream.failures.collect(name="bad"))
    given = [{"a": 1}, Watermark(1), {"a": "x"}, {"a": 3}, {"a": 4}, 5]
    with ActorSystem(workers=2) as system:
        run = system.run(graph, batch_size=1)
        run.send("rows", given)
        found = run.finish(timeout=60)
    assert [batch.to_pylist() for batch in found["good"]] == [[{"a": 1}, {"a": 3}], [{"a": 4}]]
    assert [(each.serial, each.row) for each in found["bad"]] == [(2, {"a": "x"}), (5, 5)]


def test_a_run_that_fails_names_the_bad_row() -> None:
    given = [{"a": 0}, {"a": 1}, {"a": "x"}, {"a": 3}]
    with pytest.raises(
        StreamError, match=r"operator 'to_arrow' failed at input 1, \(1, 2\)"
    ) as info:
        batches_of([{"a": 1}, (1, 2), {"a": 3}], 3)
    says = "to_arrow() wants rows that are dictionaries, not (1, 2)"
    assert str(info.value.__cause__) == says
    with pytest.raises(StreamError, match=r"failed at input 2, {'a': 'x'}"):
        batches_of(given, 4)


def test_a_schema_that_is_none_of_pyarrow_is_refused_at_the_call() -> None:
    with pytest.raises(GraphError, match=r"to_arrow\(\)'s schema is one of pyarrow, not {'a': 'in"):
        rows.to_arrow(2, {"a": "int8"})


def test_rows_that_wait_for_their_batch_are_in_a_snapshot() -> None:
    graph = rows.to_arrow(3, errors="skip").collect()
    with ActorSystem() as system:
        run = system.run(graph)
        run.send("rows", [{"a": 1}, {"a": "x"}])
        snapshot = run.snapshot()
        run.cancel()
        run = system.run(graph, restore=snapshot)
        run.send("rows", [{"a": 3}, {"b": 4}])
        assert [batch.to_pylist() for batch in run.finish(60)] == [[{"a": 1}, {"a": 3}], [{"b": 4}]]
        assert [(each.serial, each.row) for each in run.tally.failures] == [(1, {"a": "x"})]
