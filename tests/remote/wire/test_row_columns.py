"""Rows of one length are turned into columns, and nothing else is."""

import weakref
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.remote.wire.packed_rows import columns_of


class Pair(NamedTuple):
    left: int
    right: int


@given(st.integers(1, 4).flatmap(lambda n: st.lists(st.tuples(*[st.integers()] * n), min_size=1)))
def test_rows_of_one_length_are_columns(rows: list[Any]) -> None:
    assert columns_of(rows) == [list(column) for column in zip(*rows, strict=True)]


@pytest.mark.parametrize(
    "rows",
    [[], [()], [(1,), (1, 2)], [(1, 2), (1,)], [(1, 2), [1, 2]], [[1, 2]], [(1, 2), Pair(1, 2)]],
    ids=repr,
)
def test_other_rows_are_not(rows: list[Any]) -> None:
    assert columns_of(rows) is None


def test_values_live_as_long_as_the_columns() -> None:
    class Value:
        pass

    rows: list[Any] = [(Value(), number) for number in range(3)]
    seen = [weakref.ref(row[0]) for row in rows]
    columns = columns_of(rows)
    assert columns_of([*rows, None]) is None
    rows.clear()
    assert columns is not None
    assert [each() for each in seen] == columns[0]
    del columns
    assert [each() for each in seen] == [None] * 3
