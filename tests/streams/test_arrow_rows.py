"""Rows that become Arrow batches: all columns, and each row that has no place in its batch."""

from __future__ import annotations

import sys
from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, ClassVar

import pytest

from callboard import ActorSystem
from callboard.streams import Graph, RowCounts, Snapshot, StreamError, Watermark, entry
from callboard.streams.errors import GraphError
from callboard.streams.programs.columns.rows_and_batches import batch_of
from tests.streams.test_snapshot_files import go_on, snapshot_of
from tests.streams.test_snapshot_values import of_version_1

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
    # No number beyond 2**53 is exact as a double, so these fit by type and not by value.
    ([{"a": 1.5}, {"a": 1}, {"a": 2**60 + 1}], None, [2]),
    ([{"a": 1}, {"a": 2**60 + 1}, {"a": 1.5}, {"a": 1.5}, {"a": 2**60 + 1}], None, [2, 4]),
    ([{"a": 1, "b": 2}, {"b": 1.5, "a": "x"}, {"b": 2**60 + 1}], None, [1]),
    ([{"a": Decimal("1e30")}, {"a": "x"}, {"a": 2**63}], None, [1]),
    ([{}, {"a": [1]}, {"a": [2**60 + 1, 1.5]}, {"a": [1.5]}], None, [2]),
    ([{"a": {"b": 1}}, {"a": {"c": "x"}}, {"a": {"c": 1}}], None, [2]),
]


@dataclass
class Sale:
    shop: str
    amount: float
    loose: ClassVar[int] = 5


def test_rows_of_one_batch_may_be_of_several_types() -> None:
    empty: defaultdict[str, Any] = defaultdict(int)
    given = [Sale("a", 1.5), {"shop": "b"}, MappingProxyType({"amount": 2.5, "n": 3}), empty]
    wanted = [("a", 1.5), ("b", None), (None, 2.5), (None, None)]
    found = batches_of(given, 4)
    assert found == [
        [{"shop": shop, "amount": a, "n": 3 if a == 2.5 else None} for shop, a in wanted]
    ]
    schema = pa.schema([("amount", pa.float64()), ("loose", pa.int8()), ("shop", pa.string())])
    (rest,) = batches_of([*given, (3.5, 7, "c")], 5, schema)
    assert [[*row.values()] for row in rest] == [
        *[[a, None, shop] for shop, a in wanted],
        [3.5, 7, "c"],
    ]
    assert not empty


def test_a_good_row_costs_no_call_of_python() -> None:
    def calls(of_rows: list[Any], schema: Any) -> int:
        count = 0

        def note(_frame: Any, event: str, _called: Any) -> None:
            nonlocal count
            count += event in ("call", "c_call")

        to_batch = batch_of(schema)
        sys.setprofile(note)
        try:
            to_batch(of_rows)
        finally:
            sys.setprofile(None)
        return count

    fields = pa.schema([("shop", pa.string()), ("amount", pa.float64())])
    for row in (Sale("a", 1.5), {"shop": "a", "amount": 1.5}, ("a", 1.5)):
        for schema in (fields,) if isinstance(row, tuple) else (fields, None):
            calls([row], schema)  # the first time pyarrow looks up what it needs
            assert calls([row] * 100, schema) == calls([row], schema)


@pytest.mark.parametrize(("given", "fields", "bad"), BAD)
def test_each_bad_row_is_counted_and_the_batch_has_the_others(
    given: list[Any], fields: Any, bad: list[int]
) -> None:
    counts = RowCounts()
    schema = None if fields is None else pa.schema([(name, getattr(pa, t)()) for name, t in fields])
    stream = rows.to_arrow(3, schema, errors="skip")
    found = stream.collect().run_sequentially({"rows": given}, row_counts=counts)
    assert [(each.serial, each.row) for each in counts.failures] == [(n, given[n]) for n in bad]
    assert sum(batch.num_rows for batch in found) + len(bad) == len(given)


MIXED: list[list[Any]] = [
    [1, "x"],
    [1.5, 2**60 + 1],
    [1, 2**60 + 1, 1.5],
    [{"b": 1}, {"b": "x"}, {"c": 1}, {"c": 1.5}],
]


@pytest.mark.parametrize("values", MIXED)
@pytest.mark.parametrize("times", [1, 50])
def test_a_bad_row_is_one_that_no_batch_can_take(values: list[Any], times: int) -> None:
    for given in (values * times, [value for value in values for _ in range(times)]):
        good: list[Any] = []
        bad = []
        for place, value in enumerate(given):
            try:
                pa.array([*good, value])
                good.append(value)
            except pa.ArrowException:
                bad.append(place)
        batch, errors = batch_of()([{"a": value} for value in given])
        assert batch.column("a").equals(pa.array(good))
        assert sorted(errors) == bad


@pytest.mark.parametrize("values", [*MIXED, [*[{f"key {n}": n} for n in range(64)], "x"]])
def test_many_bad_rows_are_found_without_a_look_at_all_the_others_for_each(
    values: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = 0
    make = pa.array

    def counted(values: list[Any], *kind: Any) -> Any:
        nonlocal seen
        seen += len(values)
        return make(values, *kind)

    monkeypatch.setattr(pa, "array", counted)
    times = 1_024 // len(values)
    for given in (values * times, [value for value in values for _ in range(times)]):
        seen = 0
        batch, errors = batch_of()([{"a": value} for value in given])
        assert batch.num_rows + len(errors) == len(given)
        assert seen < 32 * 1_024  # a quarter of the rows, each with another quarter, is 64 * 1,024


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
    says = "to_arrow() expects rows that are dictionaries, got (1, 2)"
    assert str(info.value.__cause__) == says
    with pytest.raises(StreamError, match=r"failed at input 2, {'a': 'x'}"):
        batches_of(given, 4)


def test_a_schema_is_one_of_pyarrow() -> None:
    with pytest.raises(
        GraphError, match=r"to_arrow\(\) expects a schema of pyarrow, got {'a': 'in"
    ):
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
        assert [(each.serial, each.row) for each in run.row_counts.failures] == [(1, {"a": "x"})]


def test_a_snapshot_of_version_1_goes_on_with_the_rows_that_wait() -> None:
    def old(given: list[Any]) -> Snapshot:
        """Return to_arrow's snapshot of version 1: its state was a list, as that of batch is."""
        saved = snapshot_of(rows.batch(4, name="to_arrow").collect(), given)
        saved._operators = [
            state._replace(kind="to_arrow") if state.kind == "batch" else state
            for state in saved._operators
        ]
        return Snapshot.from_bytes(of_version_1(saved))

    graph = rows.to_arrow(4).collect()
    found = go_on(graph, old([{"a": 0}, {"a": 1}, {"a": 2}]), [{"a": 3}, {"a": 4}])
    assert [batch.to_pylist() for batch in found] == [[{"a": n} for n in range(4)], [{"a": 4}]]
    with pytest.raises(StreamError, match=r"'to_arrow' failed at input 1, {'a': 'x'}"):
        go_on(graph, old([{"a": 0}, {"a": "x"}]), [])
