"""A predicate of joins consists of a term and a comparison."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.streams import Equal, GraphError, entry
from callboard.streams.programs.joins.comparisons import Comparison
from callboard.streams.programs.joins.predicates import Term
from tests.streams.join_cases import Choice, joining, options, windows
from tests.streams.test_merge import arrivals, streams


class Order(Comparison):
    """The left value is less than the right one."""

    def holds(self, one: Any, other: Any) -> bool:
        return bool(one < other)

    def check(self, value: Any, first: Any) -> None:
        if not isinstance(value, int | float):
            raise TypeError(f"Less compares numbers, not {value!r}")


class Less(Term):
    __slots__ = ()

    _comparison = Order()

    def __init__(self, column: Any) -> None:
        super().__init__(column, None)


@given(
    st.data(), streams(2), windows, options, st.sampled_from([Less("value"), Less(3) & Equal(1)])
)
def test_a_new_term_gives_what_a_function_of_two_rows_does(
    data: st.DataObject,
    rows: list[list[Any]],
    window: dict[str, Any],
    options: dict[str, Any],
    where: Any,
) -> None:
    def says(left: Any, right: Any) -> bool:
        return bool(left.value < right.value and (where._terms[1:] == () or left[1] == right[1]))

    arriving = data.draw(arrivals(rows))
    found = joining(Choice(where, says), **window, **options).collect()
    wanted = joining(Choice(says, says), **window, **options).collect()
    assert found.run_sequentially(arriving) == wanted.run_sequentially(arriving)


def test_a_value_that_a_term_refuses_is_an_error_of_the_row() -> None:
    join = entry("a").join(entry("b"), by=0, within=9, where=Less(1), errors="skip")
    rows: dict[str, Any] = {"a": [(1, 1), (2, "x"), (3, None)], "b": [(4, 2), (5, 0)]}
    assert join.collect().run_sequentially(rows) == [((1, 1), (4, 2))]


def test_a_term_without_a_rule_for_columns_is_refused_by_joins_of_batches() -> None:
    with pytest.raises(GraphError, match="does not compare columns by Less"):
        entry("a").join_batches(entry("b"), by="t", within=1, where=Less("x"))
