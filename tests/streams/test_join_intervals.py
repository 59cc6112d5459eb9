"""Windows with a length before and one after: as in Polars, in batches and in rows."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.streams import Equal, GraphError, entry

a, b = entry("a"), entry("b")
lengths = st.sampled_from([(0, 0), (0, 3), (2, 0), (1, 4), (50, 2)])
rows = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 1)), min_size=1, max_size=12).map(
    lambda pairs: [
        {"time": time, "key": key, "number": number}
        for number, (time, key) in enumerate(sorted(pairs))
    ]
)


@settings(max_examples=80, deadline=None)
@given(rows, rows, lengths, st.booleans())
def test_pairs_are_those_of_polars(
    left: list[Any], right: list[Any], within: tuple[int, int], by_key: bool
) -> None:
    pl = pytest.importorskip("polars")
    before, after = within
    conditions = [
        pl.col("time_right") >= pl.col("time") - before,
        pl.col("time_right") <= pl.col("time") + after,
    ]
    if by_key:
        conditions.append(pl.col("key") == pl.col("key_right"))
    found = pl.DataFrame(left).join_where(pl.DataFrame(right), *conditions)
    wanted = sorted(zip(found["number"], found["number_right"], strict=True))
    where = Equal("key") if by_key else None
    pairs = a.join(b, by="time", within=within, where=where).collect()
    given_rows = {"a": left, "b": right}
    numbers = [
        (one["number"], other["number"]) for one, other in pairs.run_sequentially(given_rows)
    ]
    assert sorted(numbers) == wanted
    pa = pytest.importorskip("pyarrow")
    joined = a.join_batches(b, by="time", within=within, where=where).collect()
    batches = {name: [pa.RecordBatch.from_pylist(some)] for name, some in given_rows.items()}
    out = [row for batch in joined.run_sequentially(batches) for row in batch.to_pylist()]
    assert [(row["number"], row["number_right"]) for row in out] == numbers


def test_rows_without_a_partner_leave_when_their_time_is_over() -> None:
    joined = a.join(b, by=0, within=(1, 10), how="outer").collect()
    # The right row of time 5 waits for rows of the left stream up to 6, the left one of 4 to 14.
    given_rows: list[tuple[str, list[Any]]] = [("a", [(4,), (20,)]), ("b", [(3,), (5, 0), (20,)])]
    found = joined.run_sequentially(given_rows)
    assert found == [((4,), (3,)), ((4,), (5, 0)), ((20,), (20,))]
    alone: list[tuple[str, list[Any]]] = [
        ("a", [(4, "x")]),
        ("b", [(50,)]),
        ("b", []),
        ("a", [(60,)]),
    ]
    assert joined.run_sequentially(alone) == [((4, "x"), None), (None, (50,)), ((60,), None)]
    apart: list[tuple[str, list[Any]]] = [("a", [(4,)]), ("b", [(16,)]), ("a", [(19,)])]
    assert joined.run_sequentially(apart) == [((4,), None), (None, (16,)), ((19,), None)]


def test_the_row_whose_time_is_over_first_leaves_first() -> None:
    joined = a.join(b, by=0, within=(1, 10), how="outer", where=lambda one, other: False).collect()
    assert joined.run_sequentially({"a": [(0,), (30,)], "b": [(5,)]}) == [
        (None, (5,)),
        ((0,), None),
        ((30,), None),
    ]


def test_zero_is_a_length_of_any_type() -> None:
    noon = datetime(2026, 3, 4, 12, tzinfo=UTC)
    times = [noon + timedelta(minutes=n) for n in range(4)]
    joined = a.join(b, by=lambda time: time, within=(0, timedelta(minutes=1))).collect()
    found = joined.run_sequentially({"a": times, "b": times})
    assert sorted(found) == [
        (one, other)
        for one in times
        for other in times
        if timedelta(0) <= other - one <= timedelta(minutes=1)
    ]
    assert "within datetime.timedelta(0) before and datetime.timedelta(seconds=60) after" in (
        joined.describe()
    )


@pytest.mark.parametrize(
    ("within", "said"),
    [
        ((1,), r"must be a length, or a pair of them, \(before, after\), got \(1,\)"),
        ((1, 2, 3), r"must be a length, or a pair of them"),
        ((-1, 2), r"within\[0\]: expected a length of 0 or more, got -1"),
        ((1, None), r"within\[1\]: expected a length of 0 or more, got None"),
    ],
)
def test_a_pair_is_checked(within: Any, said: str) -> None:
    with pytest.raises(GraphError, match=said):
        a.join(b, by=0, within=within)
    pytest.importorskip("pyarrow")
    with pytest.raises(GraphError, match=said):
        a.join_batches(b, by="time", within=within)
