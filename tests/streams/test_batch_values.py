"""Values in joins of Arrow batches are compared as Python compares them."""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from callboard.streams import Band, Equal, entry
from callboard.streams.programs.columns.batches import BatchWindow
from callboard.streams.programs.columns.join_columns import Compared, ComparedColumns
from tests.streams.batch_cases import CHOICES, CLOCKS, batch, both, cases, joins, rows_in, shown

pa = pytest.importorskip("pyarrow")


@pytest.mark.parametrize(
    "key", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())], ids=str
)
@given(st.data())
def test_strings_of_any_layout_are_keys(key: Any, data: st.DataObject) -> None:
    case = data.draw(cases(CLOCKS[0], key=key))
    batches, rows = joins(CHOICES[4], CLOCKS[0], 2, 0, case.schemas, how="outer", within=4)
    out = rows_in(both(batches).run_sequentially(case.batches)["all"])
    assert shown(out) == shown(both(rows).run_sequentially(case.rows)["all"])


@pytest.mark.parametrize(
    ("values", "arrow"),
    [
        ([True, False, None], pa.bool_()),
        ([b"", b"\0", None], pa.binary()),
        ([datetime.date(2026, 1, 1), None], pa.date32()),
        ([datetime.time(1), datetime.time(2)], pa.time64("us")),
        ([2**63 - 1, -(2**63), 0, None], pa.int64()),
        ([1.5, -0.0, 0.0, math.inf, None], pa.float32()),
        ([Decimal("1.10"), None], pa.decimal128(5, 2)),
        ([15, 25], pa.dictionary(pa.int8(), pa.int64())),
    ],
    ids=str,
)
def test_values_of_many_types_are_equal_as_in_python(values: list[Any], arrow: Any) -> None:
    column = pa.array(values * 3, arrow)
    batch = pa.record_batch({"t": range(len(column)), "k": column})
    rows = batch.to_pylist()
    a, b = entry("a"), entry("b")
    out = a.join_batches(b, by="t", within=5, where=Equal("k")).collect()
    expected = a.join(b, by="t", within=5, where=Equal("k")).collect()
    found = rows_in(out.run_sequentially({"a": [batch], "b": [batch]}))
    wanted = expected.run_sequentially({"a": rows, "b": rows})
    assert [(row["t"], row["t_right"]) for row in found] == [(x["t"], y["t"]) for x, y in wanted]


near = st.one_of(
    st.integers(-3, 3).map(float),
    st.sampled_from([0.1, 0.2, 0.30000000000000004, 2.0**53, math.inf, -math.inf, math.nan]),
)
distances = st.sampled_from([0, 0.1, 0.2, 1, 2**53 + 1, 2**64, 10**400])


@given(st.lists(near, max_size=9), st.lists(near, max_size=9), distances)
@example([2.0**53], [-3.0], 2**53 + 3)  # 2**53 + 4 apart, as doubles see it
def test_floats_are_near_as_python_says(left: list[float], right: list[float], d: Any) -> None:
    inputs = {
        name: [pa.record_batch({"t": np.arange(len(some)), "x": pa.array(some, pa.float64())})]
        for name, some in (("a", left), ("b", right))
    }
    graph = entry("a").join_batches(entry("b"), by="t", rows=50, where=Band("x", d)).collect()
    found = {(row["t"], row["t_right"]) for row in rows_in(graph.run_sequentially(inputs))}
    pairs = [(i, j) for i in range(len(left)) for j in range(len(right))]
    assert found == {(i, j) for i, j in pairs if abs(left[i] - right[j]) <= d}


whole = st.integers(-(2**63), 2**63 - 1) | st.integers(-3, 3)
long = st.sampled_from([0, 1, 1.5, 2**53 + 1, 2**63 - 1])


@given(st.lists(whole, max_size=9), st.lists(whole, max_size=9), long, long, long)
def test_integers_of_64_bits_are_times_and_values(
    left: list[int], right: list[int], within: Any, d: Any, delay_threshold: Any
) -> None:
    inputs = {
        name: [pa.record_batch({"t": pa.array(some, pa.int64())})]
        for name, some in (("a", left), ("b", right))
    }
    rows = {name: batches[0].to_pylist() for name, batches in inputs.items()}
    options: dict[str, Any] = {"by": "t", "within": within, "how": "outer", "where": Band("t", d)}
    a, b = entry("a"), entry("b")
    found = (
        a.join_batches(b, delay_threshold=delay_threshold, **options)
        .collect()
        .run_sequentially(inputs)
    )
    # In Python, a time before which 1.5 lies may be rounded; 1 is the same, of integers.
    graph = a.join(
        b, delay_threshold=math.floor(delay_threshold), combine=lambda x, y: (x, y), **options
    ).collect()
    wanted = [(x and x["t"], y and y["t"]) for x, y in graph.run_sequentially(rows)]
    assert [(row["t"], row.get("t_right")) for row in rows_in(found)] == wanted


def test_events_long_past_are_forgotten_and_so_are_their_keys() -> None:
    def sent(name: str, behind: int) -> Iterator[Any]:
        for begin in range(0, 20_000, 100):
            at = np.arange(begin, begin + 100)
            keys = [f"key {n - behind}" for n in at]
            yield name, [pa.record_batch({"t": at, "k": keys})]

    arriving = [item for pair in zip(sent("a", 0), sent("b", 30), strict=True) for item in pair]
    graph = entry("a").join_batches(entry("b"), by="t", within=50, where=Equal("k")).collect()
    assert sum(map(len, graph.run_sequentially(arriving))) == 20_000 - 30


def test_keys_that_no_row_has_any_more_are_forgotten() -> None:
    compared = Compared([ComparedColumns(("k", "k"))])
    for begin in range(0, 50_000, 100):
        columns = compared.read(0, batch(k=[f"key {n}" for n in range(begin, begin + 100)]))
        compared.forget([columns])
    assert len(compared.terms[0].ids.numbers) <= 1_000 + 2 * 100
    again, _ = compared.read(1, batch(k=["key 49999", "key 0"]))
    assert again[0] == columns[0][99]
    assert again[1] > again[0]  # a number is given once


@pytest.mark.parametrize("rows", [1, 100])
def test_a_window_keeps_the_memory_of_its_rows_alone(rows: int) -> None:
    window = BatchWindow()
    for begin in range(0, 200 * rows, rows):
        at = np.arange(begin, begin + rows)
        window.add(batch(n=at), [at])
        window.drop(max(0, window.end - 10))
        first = max(0, window.end - 10)
        assert window.part(first, window.end)["n"].to_pylist() == list(range(first, window.end))
        assert sum(each.get_total_buffer_size() for each in window.batches) <= 8 * (2 * rows + 20)
        assert sum(len(columns[0]) for columns in window.columns) <= 10


@pytest.mark.parametrize("count", [1, 2, 7])
def test_rows_are_gathered_in_any_order_from_all_batches_of_a_window(count: int) -> None:
    window, rows = BatchWindow(), 40_000  # so many that neighbours stay apart
    for begin in range(0, count * rows, rows):
        at = np.arange(begin, begin + rows)
        window.add(batch(n=at), [at])
    assert len(window.batches) == count
    window.drop(10)
    schema, last = window.batches[0].schema, count * rows - 1
    draw = np.random.default_rng(count)
    some = draw.integers(10, last + 1, 500)
    for numbers in (some, np.sort(some), np.repeat(some, 2), np.array([last, 10, last])):
        assert window.gather(numbers, schema)["n"].to_pylist() == numbers.tolist()
        with_nobody = np.where(numbers % 3 == 0, -1, numbers)
        want = [None if number < 0 else number for number in with_nobody.tolist()]
        assert window.gather(with_nobody, schema)["n"].to_pylist() == want
    assert window.gather(np.full(4, -1), schema)["n"].to_pylist() == [None] * 4
