"""Joins by bands of numbers, which are found natively, and as Python compares."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.streams import Band, RowCounts, entry
from tests.streams.join_cases import Choice, expected, options
from tests.streams.join_model import Row, joined, taken
from tests.streams.test_merge import time_of

# What a band may meet: numbers that 64 bits and floats have, and some that they have not.
numbers = st.one_of(
    st.integers(-3, 3),
    st.integers(-3, 3).map(float),
    st.sampled_from(
        [0.1, 0.30000000000000004, -0.0, 2**53, 2**53 + 1, float(2**53), 2**63, -(2**63)]
    ),
    st.sampled_from([math.inf, -math.inf, math.nan, None, True, 10**400]),
)


near_times = st.sampled_from([0, 1, 1.0, 2, 2.5, 2**52 + 1, 2**53 + 1, 2**62 + 1, 10**30])


@given(
    st.lists(st.tuples(near_times, numbers), max_size=12),
    st.lists(st.tuples(near_times, numbers), max_size=12),
    st.sampled_from([0, 1, 0.2, 0.5, 2**53 + 1, 2**64]),
    st.one_of(
        st.builds(lambda n: {"within": n}, st.sampled_from([0, 1, 1.5, 2**52, 2**63])),
        st.builds(lambda n: {"rows": n}, st.sampled_from([1, 3])),
    ),
    options,
    st.sampled_from([1, 4, 100]),
)
def test_numbers_are_near_as_python_says(
    left: list[Any],
    right: list[Any],
    distance: Any,
    window: dict[str, Any],
    options: dict[str, Any],
    size: int,
) -> None:
    rows = [
        [
            Row(n, at, time, value)
            for at, (time, value) in enumerate(sorted(some, key=lambda r: r[0]))
        ]
        for n, some in enumerate((left, right))
    ]
    where = Band("value", distance)
    stream = entry("a").join(
        entry("b"), by=time_of, where=where, errors="skip", **window, **options
    )
    counts = RowCounts()
    inputs = {"a": rows[0], "b": rows[1]}
    out = stream.collect().run_sequentially(inputs, batch_size=size, row_counts=counts)
    failed = [failure.row for failure in counts.failures]

    def near(a: Row, b: Row) -> bool:
        return None not in (a.value, b.value) and bool(abs(a.value - b.value) <= distance)

    failures: list[Row] = []
    order = taken(rows).rows
    model = expected(order, Choice(where, near), window, failed=failures, **options)
    assert repr(out) == repr(model)
    assert repr(failed) == repr(failures)
    for row in failed:  # by an error that Python raises as well
        with pytest.raises(OverflowError):
            [near(row, other) for other in rows[1 - row.stream]]


def test_a_value_that_stops_being_a_number_changes_nothing() -> None:
    from decimal import Decimal

    values: list[Any] = [1, 5, Decimal(2), 6.5, 3]
    rows = [[Row(n, at, at, value) for at, value in enumerate(values)] for n in range(2)]
    where = Band("value", 1)
    graph = entry("a").join(entry("b"), by=time_of, within=10, where=where, errors="skip").collect()
    counts = RowCounts()
    out = graph.run_sequentially({"a": rows[0], "b": rows[1]}, batch_size=1, row_counts=counts)
    failed = {failure.row for failure in counts.failures}
    order = taken([[row for row in some if row not in failed] for some in rows])
    assert out == joined(order.rows, within=10, where=lambda a, b: abs(a.value - b.value) <= 1)
    assert {row.number for row in failed} == {3}  # Python cannot subtract a float and a Decimal
