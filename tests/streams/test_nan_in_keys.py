"""NaN is equal to nothing: it is an error of its row where rows are compared or ordered."""

from __future__ import annotations

import math
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, NamedTuple

import pytest

from callboard.streams import Equal, FailedRow, StreamError, entry
from tests.streams.all_ways import itself, run

NAN = math.nan


@pytest.mark.parametrize("nan", [NAN, Decimal("NaN")])
@pytest.mark.parametrize(
    "operator",
    [
        lambda stream, **options: stream.top_k(2, **options),
        lambda stream, **options: stream.distinct(**options),
        lambda stream, **options: stream.frequent(epsilon=0.1, **options),
        lambda stream, **options: stream.key_by(itself, partitions=3).count(**options),
        lambda stream, **options: stream.key_by(itself).top_k(1, abs, **options),
        lambda stream, **options: stream.watermarks(itself, **options),
        lambda stream, **options: stream.union(entry("other"), by=itself, **options),
    ],
)
def test_nan_is_an_error_of_its_row_in_keys_and_order(operator: Any, nan: Any) -> None:
    inputs = {"rows": [1, nan, 3, nan, 5]}
    with pytest.raises(StreamError, match=r"at input 1, .*[nN]a[nN]"):
        operator(entry("rows")).collect().run_sequentially(inputs)
    made = operator(entry("rows"), errors="side")
    joined = made.union(made.failures)
    inputs |= {"other": []} if "other" in joined.collect().entries else {}
    graph = joined.collect()
    failed = [row for row in graph.run_sequentially(inputs) if isinstance(row, FailedRow)]
    assert [failure.serial for failure in failed] == [1, 3]
    clean = operator(entry("rows"), errors="skip")
    assert run(clean, inputs) == run(clean, inputs | {"rows": [1, 3, 5]})


EAST = timezone(timedelta(hours=1))


def repeated(row: Any) -> Any:
    """Return what has an order beside all others like it."""
    return str(row), row


class Pair(NamedTuple):
    left: Any
    right: Any


@pytest.mark.parametrize(
    "key",
    [
        (1, NAN),
        ((), (2, (Decimal("NaN"),))),
        Pair(1, NAN),
        (datetime(2026, 3, 1, tzinfo=EAST), NAN),
    ],
)
@pytest.mark.parametrize(
    ("operator", "what"),
    [
        (lambda made, **options: made.distinct(**options), "what distinct() goes by"),
        (lambda made, **options: made.frequent(epsilon=0.1, **options), "what frequent() counts"),
        (lambda made, **options: made.key_by(itself).count(**options), "a key"),
        (lambda made, **options: made.top_k(9, repeated, **options), "what top_k() goes by"),
    ],
)
def test_nan_in_a_tuple_for_keys_or_order_is_an_error(operator: Any, what: str, key: Any) -> None:
    given: list[Any] = [(0,), key, (3,), key, ("5", b"6")]
    made = operator(entry("rows"), errors="side")
    graph = made.union(made.failures).collect()
    got = graph.run_sequentially({"rows": given})
    failed = [row for row in got if isinstance(row, FailedRow)]
    assert [failure.serial for failure in failed] == [1, 3]
    assert f"a part of {what} must be equal to itself, got" in str(failed[0].error)
    clean = operator(entry("rows"), errors="skip")
    assert run(clean, given) == run(clean, given[::2])


@pytest.mark.parametrize(
    ("operator", "what"),
    [
        (lambda a, b, **options: a.merge(b, by=itself, **options), "the time of a row"),
        (lambda a, b, **options: a.union(b, by=itself, **options), "the time of a row"),
        (
            lambda a, b, **options: a.join(b, by=len, within=9, where=Equal(itself), **options),
            "the key of a row in join()",
        ),
        (
            lambda a, b, **options: a.join(
                b, by=len, within=9, where=Equal(len) & Equal(itself), **options
            ),
            "the key of a row in join()",
        ),
    ],
)
def test_nan_in_a_tuple_that_matches_streams_is_an_error(operator: Any, what: str) -> None:
    inputs: dict[str, list[Any]] = {"a": [(1, 2), (1, NAN), (1, 3)], "b": [(1, 2), (1, 4)]}
    made = operator(entry("a"), entry("b"), errors="side")
    got = made.union(made.failures).collect().run_sequentially(inputs)
    (failed,) = [row for row in got if isinstance(row, FailedRow)]
    assert f"a part of {what} must be equal to itself, got nan" in str(failed.error)
    clean = operator(entry("a"), entry("b"), errors="skip")
    assert run(clean, inputs) == run(clean, inputs | {"a": [(1, 2), (1, 3)]})
