"""Joins of rows that cannot be joined, and bad arguments."""

from __future__ import annotations

import contextlib
import datetime
import math
import warnings
from decimal import Decimal
from typing import Any

import pytest

from callboard.streams import (
    Band,
    Equal,
    Graph,
    GraphError,
    Predicate,
    RowCounts,
    Stream,
    StreamError,
    Watermark,
    entry,
)

DAY = datetime.timedelta(days=1)
NOON = datetime.datetime(2026, 1, 1, 12)
THREE = "three-step"


def missing() -> list[Any]:
    """What Python and, where they are there, NumPy and pandas have for a value that is missing."""
    found: list[Any] = [None, math.nan, Decimal("nan")]
    with contextlib.suppress(ImportError):
        import numpy

        found += [numpy.float32("nan"), numpy.datetime64("NaT"), numpy.ma.masked]
    with contextlib.suppress(ImportError):
        import pandas

        found += [pandas.NA, pandas.NaT]
    return found


MISSING = missing()
ROWS = {"a": [(1, 1), (2, 0), (3, 4)], "b": [(1, 1), (2, 2), (4, 0), (5, 1)]}


def skipping(rows: Any, size: int = 256, **options: Any) -> tuple[list[Any], list[Any]]:
    """Join rows on their first value, skip those with errors, and return the pairs and these."""
    stream = entry("a").join(entry("b"), by=0, errors="skip", **{"within": 5, **options})
    counts = RowCounts()
    pairs = stream.collect().run_sequentially(rows, batch_size=size, row_counts=counts)
    return pairs, counts.failures


def rows_of(failures: list[Any]) -> list[Any]:
    return [failure.row for failure in failures]


class TestErrors:
    def stream(self, errors: Any, **options: Any) -> Stream[Any]:
        return entry("a").join(
            entry("b"),
            by=0,
            within=10,
            where=lambda a, b: a[1] / b[1] > 0,
            errors=errors,
            **options,
        )

    def test_a_predicate_that_raises_fails_the_run_after_what_was_before(self) -> None:
        seen: list[Any] = []
        with pytest.raises(StreamError) as info:
            self.stream("fail").to(seen.append).run_sequentially(ROWS)
        error = info.value
        assert (error.operator, error.serial, error.row) == ("join", 2, (4, 0))
        assert isinstance(error.__cause__, ZeroDivisionError)
        assert seen == [((1, 1), (1, 1)), ((1, 1), (2, 2)), ((3, 4), (1, 1)), ((3, 4), (2, 2))]

    @pytest.mark.parametrize("size", [1, 2, 100])
    def test_a_row_at_which_it_raises_gives_nothing_and_is_not_kept(self, size: int) -> None:
        stream = self.stream("side", how="outer")
        graph = Graph(stream.collect(name="out"), stream.failures.collect(name="bad"))
        out = graph.run_sequentially(ROWS, batch_size=size)
        assert [(failure.serial, failure.row) for failure in out["bad"]] == [(2, (4, 0))]
        assert out["out"] == [
            ((1, 1), (1, 1)), ((1, 1), (2, 2)), ((3, 4), (1, 1)), ((3, 4), (2, 2)),
            ((1, 1), (5, 1)), ((3, 4), (5, 1)), ((2, 0), None),
        ]  # fmt: skip

    def test_combine_may_raise_for_a_row_without_a_partner(self) -> None:
        rows = {"a": [(1,), (9,)], "b": [(2,)]}
        out, failures = skipping(rows, within=1, how="left", combine=lambda a, b: a[0] + b[0])
        assert out == [3]
        assert rows_of(failures) == [(9,)]

    @pytest.mark.parametrize("bad", [math.nan, math.inf, None, "x", datetime.datetime.min])
    def test_a_time_without_a_difference_is_an_error_of_its_row(self, bad: Any) -> None:
        pairs, failures = skipping({"a": [(1,), (bad,), (2,)], "b": [(1,)]})
        assert pairs == [((1,), (1,)), ((2,), (1,))]
        assert rows_of(failures) == [(bad,)]

    def test_a_time_of_another_sort_than_within_is_an_error_of_its_row(self) -> None:
        graph = entry("a").join(entry("b"), by=0, within=5).collect()
        with pytest.raises(StreamError, match="failed at input 0"):
            graph.run_sequentially({"a": [(datetime.datetime.min,)]})

    @pytest.mark.parametrize("where", [Equal(1), Equal(1) & Equal(2)], ids=repr)
    def test_a_key_that_is_nan_is_an_error_of_its_row(self, where: Any) -> None:
        some = [(1, math.nan, 1), (1, None, 1)]
        pairs, failures = skipping({"a": some, "b": some}, where=where)
        assert pairs == [(some[1], some[1])]
        assert rows_of(failures) == [some[0], some[0]]

    def test_a_key_that_cannot_be_compared_is_an_error_of_its_row(self) -> None:
        class Key:
            def __hash__(self) -> int:
                return 1

            def __eq__(self, other: object) -> bool:
                raise RuntimeError("never the same")

            def __ne__(self, other: object) -> bool:
                return self is not other

        rows: dict[str, list[Any]] = {"a": [(1, Key()), (2, Key()), (3, 5)], "b": [(3, 5)]}
        pairs, failures = skipping(rows, where=Equal(1))
        assert pairs == [((3, 5), (3, 5))]
        assert rows_of(failures) == [rows["a"][1]]

    @pytest.mark.parametrize("size", [1, 100])
    def test_times_without_a_difference_from_each_other_are_errors_of_rows(self, size: int) -> None:
        rows: list[Any] = [("a", [(1,)]), ("b", [(1,)])]
        rows += [("a", [(Decimal(7),)]), ("b", [(7,), (13.5,)]), ("a", [(14,)])]
        pairs, failures = skipping(rows, size)
        assert pairs == [((1,), (1,)), ((Decimal(7),), (7,))]
        assert rows_of(failures) == [(13.5,)]

    def test_times_that_turn_out_to_have_no_order_end_the_run_with_its_error(self) -> None:
        graph = entry("a").merge(entry("b"), by=0, errors="skip").collect()
        times = [("a", (0, 0)), ("b", (0, 0)), ("a", (1, "x")), ("b", (1, 2)), ("a", (3, 0))]
        with pytest.raises(StreamError, match="operator 'merge' failed") as info:
            graph.run_sequentially([(name, [(time,)]) for name, time in times], batch_size=1)
        assert isinstance(info.value.__cause__, TypeError)

    def test_a_watermark_of_infinity_lets_all_rows_go(self) -> None:
        seen: list[Any] = []
        graph = entry("a").join(entry("b"), by=0, within=Decimal(5), how="left").to(seen.append)

        def arriving() -> Any:
            yield "a", [(Decimal(1),), Watermark(math.inf)]
            yield "b", [(Decimal(9),), Watermark(math.inf)]
            assert seen == [((Decimal(1),), None)]

        graph.run_sequentially(arriving())

    def test_nan_is_near_to_nothing(self) -> None:
        stream = entry("a").join(entry("b"), by=0, within=5, where=Band(1, 10), how="left")
        rows = {"a": [(1, math.nan), (1, 3)], "b": [(1, math.nan), (1, 4)]}
        assert stream.collect().run_sequentially(rows) == [((1, 3), (1, 4)), (rows["a"][0], None)]

    @pytest.mark.parametrize("first", [True, False])
    @pytest.mark.parametrize(
        ("band", "value"),
        [
            (Band(1, 10), 3),
            (Band(1, 10), 3.5),
            (Band(1, Decimal(10)), Decimal(3)),
            (Band(1, DAY), NOON),
            (Band(1, 10) & Equal(2), 3),
        ],
        ids=repr,
    )
    @pytest.mark.parametrize("missing", MISSING, ids=repr)
    def test_a_missing_value_is_near_to_nothing_and_no_error_of_other_rows(
        self, missing: Any, band: Any, value: Any, first: bool
    ) -> None:
        stream = entry("a").join(entry("b"), by=0, within=5, where=band, how="outer")
        nothing = (1, missing, "k")
        some = [nothing, (1, value, "k")] if first else [(1, value, "k"), nothing]
        pairs = stream.collect().run_sequentially({"a": some, "b": some})
        assert pairs[0] == ((1, value, "k"), (1, value, "k"))
        assert [[row is nothing for row in pair] for pair in pairs[1:]] == [
            [True, False], [False, True],
        ]  # fmt: skip

    @pytest.mark.parametrize("lanes", [1, 3])
    @pytest.mark.parametrize("window", [{"within": 5}, {"rows": 3}, {"within": 5, "rule": THREE}])
    def test_rows_with_nothing_count_as_rows_of_the_window(
        self, window: dict[str, Any], lanes: int
    ) -> None:
        values = [None, None, 1, None, 2, 1, None, 3, 1, 1, None, 2, 2]
        rows = [[(t, value, side) for t, value in enumerate(values)] for side in "ab"]
        options = {"by": 0, "how": "outer", "lanes": lanes, **window}
        sent = dict(zip("ab", rows, strict=True))

        def near(a: Any, b: Any) -> bool:
            return None not in (a[1], b[1]) and abs(a[1] - b[1]) <= 1

        a, b = entry("a"), entry("b")
        band = a.join(b, where=Band(1, 1), **options).collect().run_sequentially(sent)
        assert band == a.join(b, where=near, **options).collect().run_sequentially(sent)

    @pytest.mark.parametrize("first", [True, False])
    @pytest.mark.parametrize("lanes", [1, 3])
    @pytest.mark.parametrize(
        ("distance", "good", "odd"),
        [(1, 5, "5"), (1, 5, NOON), (1, 5, [5]), (1, 5.5, {}), (DAY, NOON, 5), (DAY, NOON, "noon")],
    )
    def test_a_value_without_such_a_distance_is_an_error_of_its_row_alone(
        self, distance: Any, good: Any, odd: Any, lanes: int, first: bool
    ) -> None:
        mine = [(1, odd), (1, good)] if first else [(1, good), (1, odd)]
        sent = {"a": mine, "b": [(1, good), (2, good)]}
        pairs, failures = skipping(sent, where=Band(1, distance), lanes=lanes)
        assert pairs == [((1, good), (1, good)), ((1, good), (2, good))]
        assert rows_of(failures) == [(1, odd)]
        assert "expected a value with such a distance" in str(failures[0].error)

    @pytest.mark.parametrize("odd", [NOON.replace(tzinfo=datetime.UTC), NOON.date(), DAY])
    def test_a_value_of_another_sort_than_the_first_is_an_error_of_its_row_alone(
        self, odd: Any
    ) -> None:
        sent = {"a": [(1, NOON), (2, odd)], "b": [(3, NOON), (4, NOON)]}
        pairs, failures = skipping(sent, where=Band(1, DAY))
        assert pairs == [((1, NOON), (3, NOON)), ((1, NOON), (4, NOON))]
        assert rows_of(failures) == [(2, odd)]

    def test_a_key_that_pandas_calls_missing_is_an_error_of_its_row(self) -> None:
        pandas = pytest.importorskip("pandas")
        for key in (pandas.NA, pandas.NaT):
            rows = {"a": [(1, key), (1, 2)], "b": [(1, key), (1, 2)]}
            pairs, failures = skipping(rows, where=Equal(1))
            assert pairs == [((1, 2), (1, 2))]
            assert len(failures) == 2
            assert f"must be equal to itself, got {key!r}" in str(failures[0].error)

    def test_numbers_without_a_sign_are_near_as_far_as_the_larger_is_from_the_smaller(self) -> None:
        numpy = pytest.importorskip("numpy")
        graph = entry("a").join(entry("b"), by=0, within=5, where=Band(1, 2)).collect()
        three, five = (0, numpy.uint8(3)), (0, numpy.uint8(5))
        least, most = (0, numpy.uint8(0)), (0, numpy.uint8(255))
        rows = {"a": [three, five, least], "b": [five, three, most]}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = graph.run_sequentially(rows)
        assert sorted(found) == [(three, three), (three, five), (five, three), (five, five)]

    def test_values_without_an_order_may_have_a_distance(self) -> None:
        graph = entry("a").join(entry("b"), by=0, within=5, where=Band(1, 2)).collect()
        rows = {"a": [(0, 1j)], "b": [(0, 2j), (0, 4j)]}
        assert graph.run_sequentially(rows) == [((0, 1j), (0, 2j))]

    def test_a_column_that_is_missing_names_the_row(self) -> None:
        graph = entry("a").join(entry("b"), by="t", within=5, where=Equal("k")).collect()
        with pytest.raises(StreamError, match=r"'join' failed at input 0, \{'t': 1\}") as info:
            graph.run_sequentially({"a": [{"t": 1}]})
        assert isinstance(info.value.__cause__, KeyError)


def test_bad_arguments_are_refused() -> None:
    a, b = entry("a"), entry("b")
    bad: list[tuple[dict[str, Any], str]] = [
        ({}, "a number of rows, got within=None and rows=None"),
        ({"within": 1, "rows": 1}, "a number of rows, got within=1 and rows=1"),
        ({"within": -1}, "within: expected a length of 0 or more, got -1"),
        ({"within": math.nan}, "within: expected a length of 0 or more, got nan"),
        ({"within": math.inf}, "within: expected a length of 0 or more, got inf"),
        ({"within": "5"}, "within: expected a length of 0 or more, got '5'"),
        ({"within": True}, "within: expected a length of 0 or more, got True"),
        ({"rows": 0}, "rows"),
        ({"within": 1, "how": "full"}, "how must be one of inner, .*got 'full'"),
        ({"within": 1, "rule": "loose"}, "rule must be one of strict, three-step, got 'loose'"),
        ({"within": 1, "late": "include"}, "late must be one of drop, side, got 'include'"),
        ({"within": 1, "where": 5}, "where: expected a function, got 5"),
        ({"within": 1, "combine": 5}, "combine: expected a function, got 5"),
        ({"within": 1, "how": "semi", "combine": max}, "how='semi' gives rows of the left stream"),
    ]
    for options, said in bad:
        with pytest.raises(GraphError, match=said):
            a.join(b, by="t", **options)
    with pytest.raises(GraphError, match=r"join\(\) expects streams, got \[1\]"):
        a.join([1], by="t", within=1)  # type: ignore[call-overload]
    with pytest.raises(GraphError, match="a band's distance: expected a length of 0 or more"):
        Band("x", -2)
    with pytest.raises(GraphError, match="Equal: expected a name, a place or a function of a row"):
        Equal(2.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Equal("x") & (lambda left, right: True)  # type: ignore[operator]
    assert isinstance(Equal("x") & Band("y", 1), Predicate)
