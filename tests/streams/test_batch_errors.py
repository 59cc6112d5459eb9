"""Errors about Arrow batches."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from callboard.streams import (
    Band,
    Equal,
    Graph,
    GraphError,
    RowCounts,
    Stream,
    StreamError,
    Watermark,
    entry,
)
from tests.streams.batch_cases import DAY, NOON, batch, closer, rows_in
from tests.streams.join_cases import HOWS

pa = pytest.importorskip("pyarrow")

T = pa.schema({"t": pa.int64()})

BAD: list[tuple[Any, str]] = [
    (5, "stream 2: its rows must be Arrow record batches, got 5"),
    (batch(x=[1]), "stream 2, column 't': there is no such column; the columns are 'x'"),
    (batch(t=[1, None], x=[1, 1]), "stream 2, column 't', row 1: the time is null"),
    (batch(t=["1"], x=[1]), "stream 2, column 't': times must be integers, .* got string"),
    (batch(t=[1.5], x=[1]), "stream 2, column 't': it has floats, and others have integers"),
    (batch(t=[1], x=["1"]), "stream 2, column 'x': Band compares numbers and times, got string"),
    (batch(t=[1], x=[1.5]), "stream 2, column 'x': it has floats, and others have integers"),
    (batch(t=pa.array([2**64 - 1], pa.uint64()), x=[1]), "stream 2, column 't': .*not in range"),
    (
        pa.RecordBatch.from_arrays([pa.array([1])] * 2, names=["t", "t"]),
        "stream 2, column 't': there is 2 columns of that name",
    ),
]


class TestErrors:
    @pytest.fixture(params=[1, 3], ids="{} lanes".format, autouse=True)
    def set_lanes(self, request: pytest.FixtureRequest) -> None:
        self.lanes = request.param

    def stream(self, errors: Any = "fail", **options: Any) -> Stream[Any]:
        options = {"within": 10, "where": Band("x", 1), "errors": errors, **options}
        options["lanes"] = self.lanes
        return entry("a").join_batches(entry("b"), by="t", **options)

    @pytest.mark.parametrize(("bad", "said"), BAD, ids=[said for _, said in BAD])
    def test_a_bad_batch_is_an_error_that_says_what_is_wrong(self, bad: Any, said: str) -> None:
        good = batch(t=[1, 2], x=[1, 1])
        sent = [("a", [good]), ("b", [bad]), ("b", [good])]
        with pytest.raises(StreamError, match="'join_batches' failed at input 0") as info:
            self.stream().collect().run_sequentially(sent)
        assert info.value.__cause__ is not None
        assert info.value.row is bad
        with pytest.raises((TypeError, ValueError), match=said):
            raise info.value.__cause__

    @pytest.mark.parametrize(("bad", "said"), BAD, ids=[said for _, said in BAD])
    def test_a_bad_batch_changes_nothing(self, bad: Any, said: str) -> None:
        del said
        good = batch(t=[1, 2], x=[1, 1])
        sent: list[Any] = [("a", [good]), ("b", [bad, good])]
        stream = self.stream("side")
        graph = Graph(stream.collect(name="out"), stream.failures.collect(name="bad"))
        out = graph.run_sequentially(sent)
        assert [failure.row for failure in out["bad"]] == [bad]
        assert rows_in(out["out"]) == [
            {"t": t, "x": 1, "t_right": u, "x_right": 1}
            for t, u in [(1, 1), (2, 1), (1, 2), (2, 2)]
        ]

    def test_the_first_batch_may_be_the_bad_one(self) -> None:
        good = batch(t=pa.array([NOON], pa.timestamp("s")), x=[1])
        for bad in (batch(t=[1], x=[1]), batch(t=good["t"], x=["1"]), batch(t=[None], x=[1])):
            counts = RowCounts()
            stream = self.stream("skip", within=DAY)
            sent = {"a": [Watermark(NOON - DAY), bad, good], "b": [bad, good]}
            out = stream.collect().run_sequentially(sent, row_counts=counts)
            assert len(rows_in(out)) == 1
            assert counts.skips == {"join_batches": 2}

    def test_null_in_a_column_that_was_not_null_is_an_error(self) -> None:
        t = pa.field("t", pa.int64())
        first = pa.record_batch(
            {"t": [1], "x": [1]}, pa.schema([t, pa.field("x", T.field(0).type, False)])
        )
        later = [batch(t=[1, 2], x=[1, None]), batch(t=[2, 3], x=[1, 2])]
        merged = entry("a").merge_batches(entry("b"), by="t", errors="side")
        for stream in (self.stream("side"), merged):
            graph = Graph(stream.collect(name="out"), stream.failures.collect(name="bad"))
            out = graph.run_sequentially({"a": [first, *later], "b": [first]})
            assert [str(failure.error) for failure in out["bad"]] == [
                "stream 1, column 'x', row 1: null in a column that is not null"
            ]
            assert len(rows_in(out["out"])) == 4 - (stream is not merged)

    def test_columns_that_are_not_as_a_schema_says_are_an_error(self) -> None:
        stream = self.stream("side", schemas=(None, pa.schema({"t": pa.int64(), "x": pa.int32()})))
        graph = Graph(stream.collect(name="out"), stream.failures.collect(name="bad"))
        out = graph.run_sequentially({"a": [], "b": [batch(t=[1], x=[1])]})
        assert [str(failure.error) for failure in out["bad"]] == [
            "stream 2: its columns are t: int64, x: int64, and were t: int64, x: int32"
        ]

    def test_columns_that_change_are_an_error(self) -> None:
        sent = {"a": [batch(t=[1], x=[1]), batch(t=[1], x=[1], y=[1])]}
        with pytest.raises(StreamError) as info:
            self.stream().collect().run_sequentially(sent)
        assert str(info.value.__cause__) == (
            "stream 1: its columns are t: int64, x: int64, y: int64, and were t: int64, x: int64"
        )
        merged = entry("a").merge_batches(entry("b"), by="t").collect()
        with pytest.raises(StreamError) as info:
            merged.run_sequentially({"a": [batch(t=[1])], "b": [batch(t=[1], x=[1])]})
        assert str(info.value.__cause__).startswith("stream 2: its columns are t: int64, x: int64")

    def test_other_facts_of_a_schema_make_no_difference(self) -> None:
        told = pa.schema([pa.field("t", pa.int64(), nullable=False)], metadata={"from": "b"})
        sent = {"a": [batch(t=[1])], "b": [pa.record_batch({"t": [2]}, schema=told)]}
        out = entry("a").merge_batches(entry("b"), by="t").collect().run_sequentially(sent)
        assert rows_in(out) == [{"t": 1}, {"t": 2}]

    def test_two_columns_of_one_name_are_refused(self) -> None:
        sent = {"a": [batch(t=[1], t_right=[1])], "b": [batch(t=[1])]}
        with pytest.raises(StreamError) as info:
            self.stream(where=None).collect().run_sequentially(sent)
        assert "two columns would be 't_right', of ['t', 't_right'] and of ['t']" in str(
            info.value.__cause__
        )

    @pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
    def test_a_time_that_is_no_point_in_time_is_refused(self, bad: float) -> None:
        with pytest.raises(StreamError) as info:
            self.stream(where=None).collect().run_sequentially({"a": [batch(t=[1.5, bad])]})
        assert "stream 1, column 't', row 1: the time is" in str(info.value.__cause__)

    def test_nan_is_equal_to_nothing(self) -> None:
        sent = {"a": [batch(t=[1, 2], x=[1.5, math.nan])]}
        with pytest.raises(StreamError) as info:
            self.stream(where=Equal("x")).collect().run_sequentially(sent)
        assert "stream 1, column 'x', row 1: NaN is equal to nothing" in str(info.value.__cause__)

    def test_lists_are_no_keys(self) -> None:
        with pytest.raises(StreamError) as info:
            self.stream(where=Equal("x")).collect().run_sequentially({"a": [batch(t=[1], x=[[1]])]})
        assert "Equal compares single values, got list" in str(info.value.__cause__)

    @pytest.mark.parametrize(
        ("options", "times", "said"),
        [
            (
                {"within": 5},
                [NOON],
                "within must be a timedelta, as times are timestamp.us., got 5",
            ),
            ({"within": DAY}, [1], "within must be a number, as values are integers, got datetime"),
            ({"within": 2**63}, [1], "within must be at most 2..63 - 1 of integers, got 92233"),
            (
                {"within": 5, "delay_threshold": 2**64},
                [1],
                "delay_threshold must be at most 2..63 - 1 of integers, got 1844",
            ),
            ({"where": Band("t", DAY)}, [1], "a band's distance must be a number"),
        ],
    )
    def test_lengths_are_those_of_times(
        self, options: dict[str, Any], times: list[Any], said: str
    ) -> None:
        stream = self.stream(**{"where": None, **options})
        with pytest.raises(StreamError) as info:
            stream.collect().run_sequentially({"a": [batch(t=times)]})
        with pytest.raises((TypeError, ValueError), match=said):
            raise info.value.__cause__ or info.value

    @pytest.mark.parametrize("first", [True, False])
    def test_a_watermark_is_a_time_as_rows_have(self, first: bool) -> None:
        both = [batch(t=pa.array([NOON], pa.timestamp("s"))), Watermark(5)]
        graph = self.stream(where=None, within=DAY).collect()
        with pytest.raises(StreamError) as info:
            graph.run_sequentially({"a": both[::-1] if first else both})
        assert "a watermark must be a time like those of rows, timestamp[s], got 5" in str(
            info.value.__cause__
        )

    @pytest.mark.parametrize(
        "mark", [math.inf, Decimal("inf"), 2**70, 1e300, -math.inf, -(2**70), 5, 5.5, np.int64(5)]
    )
    def test_a_watermark_of_any_number_is_one_of_integers(self, mark: Any) -> None:
        rows = {name: [{"t": 5}, Watermark(mark), {"t": 5}] for name in "ab"}
        sent = {
            name: [x if isinstance(x, Watermark) else batch(t=[5]) for x in some]
            for name, some in rows.items()
        }
        found = self.stream(where=None, how="outer").collect().run_sequentially(sent, batch_size=1)
        graph = entry("a").join(entry("b"), by="t", within=10, how="outer", combine=lambda x, y: 0)
        assert len(rows_in(found)) == len(graph.collect().run_sequentially(rows, batch_size=1))

    @pytest.mark.parametrize(
        "answer",
        [
            lambda row, batch: [True] * len(batch),
            lambda row, batch: True,
            lambda row, batch: np.ones(len(batch) + 1, bool),
            lambda row, batch: np.ones(len(batch), int),
            lambda row, batch: pa.array([1] * len(batch)),
            lambda row, batch: np.ones((len(batch), 1), bool),
            lambda row, batch: None,
        ],
    )
    def test_a_mask_is_a_boolean_array_of_the_batch_s_length(self, answer: Any) -> None:
        graph = self.stream(where=answer).collect()
        with pytest.raises(StreamError, match="failed at input 0") as info:
            graph.run_sequentially({"a": [batch(t=[1])], "b": [batch(t=[2], x=[7])]})
        assert info.value.row.to_pylist() == [{"t": 2, "x": 7}]
        assert "where=: expected a boolean array of NumPy or Arrow with 1" in str(
            info.value.__cause__
        )

    @pytest.mark.parametrize("size", [1, 2, 100])
    @pytest.mark.parametrize("how", HOWS)
    def test_a_row_at_which_a_mask_raises_gives_nothing_and_is_not_kept(
        self, how: Any, size: int
    ) -> None:
        def mask(row: dict[str, Any], batch: Any) -> Any:
            if row["x"] == 0:
                raise ZeroDivisionError
            return np.ones(len(batch), bool)

        rows = {
            "a": [{"t": t, "x": x} for t, x in [(1, 1), (2, 0), (4, 4), (20, 2)]],
            "b": [{"t": t, "x": x} for t, x in [(1, 1), (2, 2), (3, 0), (4, 0), (5, 1), (50, 1)]],
        }
        sent = {
            name: [
                pa.RecordBatch.from_pylist(some[begin : begin + size])
                for begin in range(0, len(some), size)
            ]
            for name, some in rows.items()
        }
        stream = self.stream("side", where=mask, how=how, n=2)
        graph = Graph(stream.collect(name="out"), stream.failures.collect(name="bad"))
        out = graph.run_sequentially(sent)
        failed = [failure.row.to_pylist()[0] for failure in out["bad"]]
        assert failed == [{"t": 2, "x": 0}, {"t": 3, "x": 0}, {"t": 4, "x": 0}]
        kept = {name: [row for row in some if row["x"]] for name, some in rows.items()}
        alone = entry("a").join(entry("b"), by="t", within=10, how=how).collect()
        wanted = alone.run_sequentially(kept)
        if how not in ("semi", "anti"):
            wanted = [(x and x["t"], y and y["t"]) for x, y in wanted]
            assert [(row["t"], row["t_right"]) for row in rows_in(out["out"])] == wanted
        else:
            assert rows_in(out["out"]) == wanted

    def test_pairs_found_before_a_failure_have_gone_out_in_full_batches(self) -> None:
        def mask(row: dict[str, Any], batch: Any) -> Any:
            return np.full(len(batch), 1 // (5 - row["t"]) >= 0)

        seen: list[Any] = []
        graph = self.stream(where=mask, n=2).to(seen.append)
        with pytest.raises(StreamError):
            graph.run_sequentially({"a": [batch(t=[1, 2, 3])], "b": [batch(t=[4, 5, 6])]})
        assert rows_in(seen) == [{"t": 1, "t_right": 4}, {"t": 2, "t_right": 4}]

    def test_a_type_that_arrow_cannot_gather_is_refused_at_once(self) -> None:
        types = pa.array([0], pa.int8())
        words = pa.UnionArray.from_sparse(types, [pa.array(["x"], pa.string_view())])
        merged = entry("a").merge_batches(entry("b"), by="t")
        for stream in (self.stream(where=None), merged):
            with pytest.raises(StreamError) as info:
                stream.collect().run_sequentially({"a": [batch(t=[1], w=words)]})
            assert str(info.value.__cause__).startswith(
                "stream 1, column 'w': Arrow cannot gather rows of sparse_union<0: string_view=0>: "
            )


def test_bad_arguments_are_refused() -> None:
    a, b = entry("a"), entry("b")
    bad: list[tuple[dict[str, Any], str]] = [
        ({}, "a number of rows, got within=None and rows=None"),
        ({"within": 1, "rows": 1}, "a number of rows, got within=1 and rows=1"),
        ({"within": -1}, "within: expected a length of 0 or more, got -1"),
        ({"rows": 0}, "rows"),
        ({"within": 1, "n": 0}, "n must be"),
        ({"within": 1, "how": "full"}, "how must be one of inner, .*got 'full'"),
        ({"within": 1, "rule": "loose"}, "rule must be one of strict, three-step, got 'loose'"),
        ({"within": 1, "late": "include"}, "late must be one of drop, side, got 'include'"),
        (
            {"within": 1, "delay_threshold": -1},
            "delay_threshold must be a length of time of zero or more, got -1",
        ),
        ({"within": 1, "suffix": 1}, "suffix must be a string, got 1"),
        ({"within": 1, "lanes": 0}, "lanes"),
        ({"within": 1, "where": 5}, "where: expected a function, got 5"),
        ({"within": 1, "where": (closer,)}, "a function, or one for each of 2 streams, got"),
        ({"within": 1, "where": Equal(1)}, "compares columns by their names, got 1"),
        ({"within": 1, "where": Equal("x", len)}, "compares columns by their names, got len"),
        ({"within": 1, "by": 1}, r"by= of join_batches\(\) must be a non-empty string"),
        ({"within": 1, "by": ("x",)}, "a tuple of 2 values, got"),
        ({"within": 1, "schemas": 5}, "of each of 2 streams, or None for an unknown one"),
        ({"within": 1, "schemas": (T,)}, "of each of 2 streams, or None for an unknown one"),
        ({"within": 1, "schemas": (T, 5)}, "of each of 2 streams, or None for an unknown o"),
        ({"within": 1, "schemas": (T, pa.schema({}))}, "stream 2, column 't': there is no such"),
        ({"within": DAY, "schemas": (T, None)}, "within must be a number, as values are integers"),
        ({"within": 1, "where": Equal("x"), "schemas": (T, T)}, "stream 1, column 'x': there is n"),
        ({"within": 1, "schemas": (T, pa.schema({})), "lanes": 2}, "stream 2, column 't': there i"),
    ]
    for options, said in bad:
        with pytest.raises(GraphError, match=said):
            a.join_batches(b, **{"by": "t", **options})
    where = Equal("x") & Equal("x") & Equal("x") & Equal("x")
    with pytest.raises(GraphError, match="compares up to 7 columns, got 8"):
        a.join_batches(b, by="t", within=1, where=where & where)
    with pytest.raises(GraphError, match=r"join_batches\(\) expects streams, got \[1\]"):
        a.join_batches([1], by="t", within=1)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"merge_batches\(\) expects at least one stream"):
        a.merge_batches(by="t")
