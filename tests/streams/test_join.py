"""Joins of two streams: the same outputs in the same order, however their rows arrive."""

from __future__ import annotations

import datetime
import gc
import pickle
from types import SimpleNamespace
from typing import Any
from weakref import ref

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import Band, Equal, Graph, Watermark, entry
from callboard.testing import ManualSystem
from tests.streams.join_cases import CHOICES, Choice, expected, joining, options, windows
from tests.streams.join_model import Row, taken
from tests.streams.test_merge import arrivals, streams
from tests.waiting import in_threads


@given(
    st.data(), streams(2), st.sampled_from(CHOICES), windows, options, st.sampled_from([1, 3, 100])
)
def test_a_join_is_that_of_the_model_however_rows_arrive(
    data: st.DataObject,
    rows: list[list[Any]],
    choice: Choice,
    window: dict[str, Any],
    options: dict[str, Any],
    size: int,
) -> None:
    delay_threshold = data.draw(st.sampled_from([0, 2]))
    stream = joining(choice, **window, **options, delay_threshold=delay_threshold, late="side")
    graph = Graph(stream.collect(name="all"), stream.side("late").collect(name="late"))
    out = graph.run_sequentially(data.draw(arrivals(rows)), batch_size=size)
    order = taken(rows, delay_threshold)
    assert out["all"] == expected(order.rows, choice, window, **options)
    assert sorted(out["late"]) == sorted(order.late[0] + order.late[1])


@given(st.data(), streams(2), st.sampled_from(CHOICES), windows, options, st.integers(0, 1_000))
def test_a_join_under_any_seed_is_that_of_a_sequential_run(
    data: st.DataObject,
    rows: list[list[Any]],
    choice: Choice,
    window: dict[str, Any],
    options: dict[str, Any],
    seed: int,
) -> None:
    arriving = data.draw(arrivals(rows))
    graph = joining(choice, **window, **options).collect()
    with ManualSystem(seed) as system:
        run = system.run(graph, batch_size=2)
        for name, some in arriving:
            run.send(name, some)
        assert run.finish() == graph.run_sequentially(arriving)


@pytest.mark.parametrize("lanes", [1, 3])
@pytest.mark.parametrize("threading", ["dynamic", "dedicated", "assigned"])
def test_a_join_of_streams_that_two_threads_send(threading: str, lanes: int) -> None:
    rows = [[Row(n, at, at // 2, at % 7) for at in range(2_000)] for n in range(2)]
    graph = joining(CHOICES[1], within=5, how="outer", lanes=lanes).collect()
    with ActorSystem(workers=2) as system:
        run = system.run(graph, batch_size=32, threading=threading)
        in_threads(lambda each: run.send(*each), zip("ab", rows, strict=True))
        out = run.finish(timeout=60)
    assert out == graph.run_sequentially({"b": rows[1], "a": rows[0]})
    assert len(out) > 2_000


def test_branches_that_are_joined_may_be_united_again() -> None:
    rows = entry("rows")
    pairs = rows.join(rows.map(lambda n: n), by=int, within=0, combine=lambda a, b: ("pair", a, b))
    graph = pairs.union(rows).collect()
    expected = [("pair", 1, 1), 1, ("pair", 2, 2), 2]
    for size in (1, 2):
        out = graph.run_sequentially({"rows": [1, 2]}, batch_size=size)
        assert sorted(map(str, out)) == sorted(map(str, expected))
    assert graph.run_sequentially({"rows": [1, 2]}, batch_size=1) == graph.run_sequentially(
        {"rows": [1, 2]}, batch_size=100
    )


def test_rows_without_partners_leave_as_soon_as_time_has_passed_their_window() -> None:
    seen: list[Any] = []
    graph = entry("a").join(entry("b"), by=int, within=5, how="left").to(seen.append)
    steps: list[tuple[str, Any, list[Any]]] = [
        ("a", 1, []),
        ("a", 2, []),
        ("b", Watermark(7), []),  # a row of 2 may come, and what it gives goes first
        ("a", 7, [(1, None)]),
        ("a", Watermark(20), []),
        ("b", Watermark(9), [(2, None)]),
        ("b", 10, [(7, 10)]),
    ]

    def arriving() -> Any:
        for name, row, gives in steps:
            before = len(seen)
            yield name, [row]
            assert seen[before:] == gives, row

    graph.run_sequentially(arriving(), batch_size=1)


@pytest.mark.parametrize("how", ["inner", "left", "anti", "semi"])
@pytest.mark.parametrize(
    "window", [{"within": 5}, {"rows": 3}, {"within": 5, "rule": "three-step"}]
)
def test_no_output_is_late_behind_a_join(how: Any, window: dict[str, Any]) -> None:
    def oldest(row: Any) -> Any:
        both = row if isinstance(row, tuple) else (row,)
        return min(each for each in both if each is not None)

    joined = entry("a").join(entry("b"), by=int, how=how, **window)
    # With such a delay_threshold, only what a watermark has ruled out is late.
    after = joined.map(oldest).merge(entry("c"), by=int, delay_threshold=1_000, late="side")
    graph = Graph(after.collect(name="out"), after.side("late").collect(name="late"))
    rows: list[tuple[str, list[Any]]] = [
        ("a", [7]), ("a", [Watermark(10)]), ("b", [Watermark(10)]),
        ("b", [12]), ("a", [13, Watermark(20)]), ("b", [Watermark(20)]), ("c", [1]),
        ("a", [21, 25]), ("b", [22, 26, 27, Watermark(40)]), ("a", [Watermark(40)]),
    ]  # fmt: skip
    out = graph.run_sequentially(rows, batch_size=1)
    assert not out["late"]
    assert out["out"]


def test_the_paper_s_rule_compares_with_what_its_own_stream_left_in_a_window() -> None:
    # Figure 1 of Gulisano et al. 2015: a window of 4, and two rows that are 5 apart.
    inputs = {"a": [1, 4], "b": [2, 6]}
    pairs = {
        rule: entry("a").join(entry("b"), by=int, within=4, rule=rule).collect()
        for rule in ("strict", "three-step")
    }
    assert pairs["strict"].run_sequentially(inputs) == [(1, 2), (4, 2), (4, 6)]
    assert pairs["three-step"].run_sequentially(inputs) == [(1, 2), (4, 2), (1, 6), (4, 6)]


@pytest.mark.parametrize("lanes", [1, 2])
@pytest.mark.parametrize("where", [None, Equal("time"), Band("time", 1)])
def test_a_run_that_is_over_keeps_no_rows(where: Any, lanes: int) -> None:
    class Timed:
        def __init__(self, time: int) -> None:
            self.time = time

    rows = [Timed(at) for at in range(9)]
    join = entry("a").join(entry("b"), by="time", within=100, where=where, lanes=lanes)
    with ManualSystem() as system:
        run = system.run(join.to(lambda pair: None))
        run.send("a", rows)
        run.send("b", rows)
        run.finish()
        kept = ref(rows[0])
        del rows
        gc.collect()
        assert kept() is None


@pytest.mark.parametrize(
    "window", [{"within": 3}, {"rows": 2}, {"within": 3, "rule": "three-step"}]
)
@pytest.mark.parametrize("where", [None, Equal(0), Band(0, 1)])
def test_a_stream_with_a_join_can_be_pickled(where: Any, window: dict[str, Any]) -> None:
    join = entry("a").join(entry("b"), by=0, where=where, **window).collect()
    again = pickle.loads(pickle.dumps(join))
    rows = {"a": [(1,), (3,), (4,)], "b": [(1,), (2,), (7,)]}
    assert again.run_sequentially(rows) == join.run_sequentially(rows)


def test_times_may_be_datetimes() -> None:
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    hours = [{"at": start + datetime.timedelta(hours=n), "n": n} for n in range(4)]
    graph = entry("a").join(entry("b"), by="at", within=datetime.timedelta(hours=1))
    out = graph.map(lambda pair: (pair[0]["n"], pair[1]["n"])).collect()
    assert out.run_sequentially({"a": hours, "b": hours[::2]}) == [
        (0, 0), (1, 0), (1, 2), (2, 2), (3, 2),
    ]  # fmt: skip


def test_columns_may_have_another_name_on_the_other_side() -> None:
    left = [SimpleNamespace(ts=1, key="k", x=5)]
    right = [("k", 2, 7), ("k", 3, 99), ("other", 4, 5)]
    where = Equal("key", 0) & Band("x", 2, lambda row: row[2])
    graph = entry("a").join(entry("b"), by=("ts", 1), within=10, where=where).collect()
    rows: dict[str, list[Any]] = {"a": left, "b": right}
    assert graph.run_sequentially(rows) == [(left[0], right[0])]
    assert repr(where) == "Equal('key', 0) & Band('x', <lambda>, 2)"


def test_a_description_says_how_partners_are_found() -> None:
    a, b = entry("a"), entry("b")
    joins = [
        a.join(b, by="t", within=600, where=Equal("k") & Band("x", 1), name="one"),
        a.join(b, by=("t", "u"), rows=1_000, where=lambda x, y: x == y, how="left", name="two"),
        a.join(b, by="t", within=1, rule="three-step", lanes=2, name="three"),
        a.join(b, by="t", within=1, where=Band("x", 2), name="four"),
        a.join(b, by="t", rows=5, where=Band("x", 2), name="five"),
        a.join(b, by="t", within=2**60, where=Band("x", 2), name="six"),
    ]
    said = Graph(*(join.collect(name=f"{n}") for n, join in enumerate(joins))).describe()
    assert "inner, within 600 by 't', Equal('k') & Band('x', 1), found by 'k'" in said
    assert "left, the last 1,000 rows by 't', 'u', each pair compared" in said
    assert "by 't', three-step, every pair, 2 lanes, of a, b, in each lane one worker" in said
    assert "inner, within 1 by 't', Band('x', 2), numbers found by buckets" in said
    assert "inner, the last 5 rows by 't', Band('x', 2), numbers found by buckets" in said
    assert "inner, within 1152921504606846976 by 't', Band('x', 2), each pair compared" in said
