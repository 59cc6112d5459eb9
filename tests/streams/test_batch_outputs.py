"""Outputs of joins and merges of Arrow batches, and when they come."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import Any

import pytest

from callboard.streams import Band, Equal, Graph, RowCounts, StreamError, Watermark, entry
from tests.streams.batch_cases import DAY, NOON, batch, both, closer, rows_in

pa = pytest.importorskip("pyarrow")
pc = pytest.importorskip("pyarrow.compute")


class TestOutputs:
    def test_names_that_both_streams_have_get_a_suffix(self) -> None:
        a, b = entry("a"), entry("b")
        graph = a.join_batches(b, by=("t", "u"), within=5, suffix=" 2").collect()
        inputs = {"a": [batch(t=[1], k=["x"])], "b": [batch(u=[2], k=["y"])]}
        [out] = graph.run_sequentially(inputs)
        assert out.to_pylist() == [{"t": 1, "k": "x", "u": 2, "k 2": "y"}]

    def test_a_row_waits_for_the_columns_that_it_lacks(self) -> None:
        seen: list[Any] = []
        graph = (
            entry("a").join_batches(entry("b"), by="t", within=1, how="left", n=1).to(seen.append)
        )

        def arriving() -> Iterator[Any]:
            yield "b", [Watermark(50)]
            yield "a", [batch(t=[1, 2, 9])]
            assert not seen
            yield "b", [batch(t=pa.array([], pa.int64()), x=pa.array([], pa.string()))]
            assert rows_in(seen) == [
                {"t": 1, "t_right": None, "x": None},
                {"t": 2, "t_right": None, "x": None},
            ]

        graph.run_sequentially(arriving(), batch_size=1)
        assert len(seen) == 3

    def test_a_schema_that_is_given_needs_no_batch_and_no_waiting(self) -> None:
        seen: list[Any] = []
        schema = pa.schema({"t": pa.int64(), "x": pa.string()})
        graph = (
            entry("a")
            .join_batches(entry("b"), by="t", within=1, how="outer", n=1, schemas=(schema, None))
            .to(seen.append)
        )

        def arriving() -> Iterator[Any]:
            yield "b", [batch(t=[1, 2, 9])]
            yield "a", [Watermark(50)]
            assert rows_in(seen) == [
                {"t": None, "x": None, "t_right": 1},
                {"t": None, "x": None, "t_right": 2},
            ]

        graph.run_sequentially(arriving(), batch_size=1)
        assert {each.schema.field("x").type for each in seen} == {pa.string()}
        assert len(seen) == 3

    @pytest.mark.parametrize("how", ["left", "right", "outer"])
    def test_columns_that_are_not_known_at_the_end_are_an_error(self, how: Any) -> None:
        graph = entry("a").join_batches(entry("b"), by="t", within=1, how=how).collect()
        sent, other = ("b", 1) if how == "right" else ("a", 2)
        with pytest.raises(StreamError) as info:
            graph.run_sequentially({sent: [batch(t=[1, 2])]})
        assert str(info.value.__cause__) == (
            f"the columns of stream {other} are unknown, because it had no batch, and 2 rows of "
            f"stream {3 - other} have no partner: give schemas= to join_batches(), or send a batch "
            "without rows"
        )

    @pytest.mark.parametrize("how", ["inner", "right", "semi", "anti"])
    def test_columns_that_nothing_lacks_need_not_be_known(self, how: Any) -> None:
        graph = entry("a").join_batches(entry("b"), by="t", within=1, how=how).collect()
        out = graph.run_sequentially({"a": [batch(t=[1, 2])]})
        assert rows_in(out) == ([{"t": 1}, {"t": 2}] if how == "anti" else [])

    def test_columns_of_dictionaries_lists_and_structs_come_through(self) -> None:
        def some(begin: int) -> Any:
            at = range(begin, begin + 3)
            words = pa.array([f"w{n}" for n in at]).dictionary_encode()
            return batch(t=at, d=words, many=[[n] * n for n in at], s=[{"n": n} for n in at])

        inputs = {"a": [some(0), some(3)], "b": [some(1), some(4)]}
        joined = entry("a").join_batches(entry("b"), by="t", within=0, how="outer", n=4)
        out = joined.collect().run_sequentially(inputs)
        assert [len(each) for each in out] == [4, 3]
        assert out[0].schema.field("d_right").type == pa.dictionary(pa.int32(), pa.string())
        rows = rows_in(out)
        assert [(r["d"], r["d_right"]) for r in rows[:2]] == [("w0", None), ("w1", "w1")]
        assert rows[3]["many_right"] == [3, 3, 3]
        merged = entry("a").merge_batches(entry("b"), by="t").collect().run_sequentially(inputs)
        assert [row["s"]["n"] for row in rows_in(merged)] == [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6]

    @pytest.mark.parametrize("n", [1, 4, 1_000])
    @pytest.mark.parametrize("how", ["inner", "outer", "anti"])
    def test_no_output_is_late_behind_a_join(self, how: Any, n: int) -> None:
        joined = entry("a").join_batches(entry("b"), by="t", within=5, how=how, n=n)

        def oldest(some: Any) -> Any:
            times = [some[name] for name in ("t", "t_right") if name in some.schema.names]
            return some.append_column("oldest", pc.min_element_wise(*times)).select(["oldest"])

        behind = joined.map_batches(oldest).merge_batches(
            entry("c"), by="oldest", delay_threshold=1_000, late="side"
        )
        rows: list[Any] = [
            ("a", [7]), ("a", Watermark(10)), ("b", Watermark(10)), ("b", [12]),
            ("a", [13]), ("a", Watermark(20)), ("b", Watermark(20)), ("a", [21, 25]),
            ("b", [22, 26, 27]), ("b", Watermark(40)), ("a", Watermark(40)), ("c", [1]),
        ]  # fmt: skip
        names = {"a": "t", "b": "t", "c": "oldest"}
        sent = [(e, [x if isinstance(x, Watermark) else batch(**{names[e]: x})]) for e, x in rows]
        out = both(behind).run_sequentially(sent, batch_size=1)
        assert not out["late"]
        assert out["all"]

    def test_a_watermark_goes_on_when_nothing_before_it_waits(self) -> None:
        seen: list[Any] = []

        class Marks:
            def receive(self, row: Any) -> None:
                pass

            def on_watermark(self, time: Any) -> None:
                seen.append(time)

        merged = entry("a").merge_batches(entry("b"), by="t", n=2)
        steps = [
            ("a", batch(t=pa.array([NOON, NOON + DAY], pa.timestamp("s")))),
            ("b", Watermark(NOON + 5 * DAY)),
            ("a", Watermark(NOON + DAY / 2)),
            ("a", batch(t=pa.array([NOON + 2 * DAY], pa.timestamp("s")))),
            ("a", Watermark(NOON + 3 * DAY)),
        ]
        graph: Graph[Any] = merged.stateful(Marks).collect()
        graph.run_sequentially([(e, [each]) for e, each in steps], batch_size=1)
        assert seen == [NOON + DAY / 2, NOON + 2 * DAY]

    def test_rows_go_out_as_soon_as_batches_are_full(self) -> None:
        seen: list[Any] = []
        graph: Graph[Any] = entry("a").merge_batches(entry("b"), by="t", n=2).to(seen.append)

        def arriving() -> Iterator[Any]:
            yield "a", [batch(t=[1, 3, 5])]
            yield "b", [batch(t=[2])]
            assert rows_in(seen) == [{"t": 1}, {"t": 2}]
            yield "b", [Watermark(9)]
            assert rows_in(seen[1:]) == [{"t": 3}, {"t": 5}]

        graph.run_sequentially(arriving(), batch_size=1)
        assert len(seen) == 2

    def test_a_row_goes_before_those_of_an_earlier_batch_that_are_later(self) -> None:
        steps = [
            ("a", batch(t=[5])),
            ("a", batch(t=[3, 7])),
            ("b", batch(t=[4])),
            ("b", Watermark(4)),
        ]
        graph = entry("a").merge_batches(entry("b"), by="t", delay_threshold=2, n=1).collect()
        out = graph.run_sequentially([(e, [each]) for e, each in steps], batch_size=1)
        assert rows_in(out) == [{"t": 3}, {"t": 4}, {"t": 5}, {"t": 7}]

    @pytest.mark.parametrize("size", [1, 2])
    def test_branches_that_are_joined_may_be_united_again(self, size: int) -> None:
        some = entry("some")
        pairs = some.join_batches(some.map_batches(lambda each: each), by="t", within=0, n=1)
        graph = pairs.union(some).collect()
        sent = {"some": [batch(t=[1]), Watermark(2), batch(t=[2])]}
        out = graph.run_sequentially(sent, batch_size=size)
        assert rows_in(out) == [{"t": 1}, {"t": 1, "t_right": 1}, {"t": 2}, {"t": 2, "t_right": 2}]

    def test_a_watermark_between_two_times_lets_the_later_one_come(self) -> None:
        times = pa.array([NOON, NOON + datetime.timedelta(seconds=1)], pa.timestamp("s"))
        mark = Watermark(NOON + datetime.timedelta(milliseconds=1))
        counts = RowCounts()
        graph = entry("a").merge_batches(entry("b"), by="t").collect()
        out = graph.run_sequentially(
            {"a": [batch(t=times[:0]), mark, batch(t=times)]}, row_counts=counts
        )
        assert [len(each) for each in out] == [1]
        assert counts.lates == {"merge_batches": 1}

    @pytest.mark.parametrize("make", [pa.array, lambda mask: pa.chunked_array([mask])])
    def test_null_in_a_mask_is_no_partner(self, make: Any) -> None:
        graph = entry("a").join_batches(
            entry("b"), by="t", within=9, where=lambda row, batch: make([True, None, False])
        )
        sent = {"a": [batch(t=[1, 2, 3])], "b": [batch(t=[4])]}
        assert rows_in(graph.collect().run_sequentially(sent)) == [{"t": 1, "t_right": 4}]

    def test_late_rows_are_counted_one_by_one(self) -> None:
        counts = RowCounts()
        graph = entry("a").merge_batches(entry("b"), by="t", delay_threshold=2).collect()
        out = graph.run_sequentially({"a": [batch(t=[5, 3, 2, 9, 1])]}, row_counts=counts)
        assert rows_in(out) == [{"t": 3}, {"t": 5}, {"t": 9}]
        assert counts.lates == {"merge_batches": 2}

    def test_a_description_says_how_partners_are_found(self) -> None:
        a, b = entry("a"), entry("b")
        joins = [
            a.join_batches(b, by="t", within=600, where=Equal("k") & Band("x", 1)),
            a.join_batches(b, by=("t", "u"), rows=5, where=Band("x", 1), how="left", n=10),
            a.join_batches(b, by="t", rows=10**6, where=Band("x", 1)),
            a.join_batches(b, by="t", within=1, rule="three-step"),
            a.join_batches(b, by="t", within=1, where=closer),
            a.merge_batches(b, by="t"),
        ]
        said = Graph(*(join.collect(name=f"{n}") for n, join in enumerate(joins))).describe()
        for words in (
            "inner, within 600 by 't', Equal('k') & Band('x', 1), found by buckets, batches of 8",
            "left, the last 5 rows by 't', 'u', Band('x', 1), each pair compared, batches of 10",
            "the last 1,000,000 rows by 't', Band('x', 1), found by buckets",
            "inner, within 1 by 't', three-step, every pair",
            "inner, within 1 by 't', found by masks",
            "by 't', batches of 8,192 rows",
        ):
            assert words in said
