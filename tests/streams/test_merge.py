"""Merges: several streams in one order of time, however their rows arrive."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.messages import DeadLetter
from callboard.streams import Graph, GraphError, RowCounts, Stream, StreamError, Watermark, entry
from callboard.testing import ManualSystem
from tests.streams.join_model import Row, taken
from tests.waiting import in_threads

NAMES = ("a", "b", "c")


def time_of(row: Row) -> Any:
    return row.time


@st.composite
def streams(draw: st.DrawFn, count: int = 3) -> list[list[Row | Watermark]]:
    """Streams with ties, silences, watermarks, and rows that are behind."""
    made = []
    for stream in range(count):
        rows: list[Row | Watermark] = []
        time = 0
        for number in range(draw(st.integers(0, 12))):
            time += draw(st.sampled_from([0, 0, 1, 2, 5]))
            if draw(st.integers(0, 7)) == 0:
                rows.append(Watermark(time))
            else:
                behind = draw(st.sampled_from([0, 0, 0, 1, 3]))
                rows.append(Row(stream, number, time - behind, draw(st.integers(0, 3))))
        made.append(rows)
    return made


@st.composite
def arrivals(draw: st.DrawFn, rows: list[list[Any]]) -> list[tuple[str, list[Any]]]:
    """A way in which the rows of streams may arrive among each other."""
    left = [list(stream) for stream in rows]
    arriving = []
    while any(left):
        stream = draw(st.sampled_from([n for n, stream in enumerate(left) if stream]))
        size = draw(st.integers(1, 4))
        arriving.append((NAMES[stream], left[stream][:size]))
        del left[stream][:size]
    return arriving


def merged(count: int = 3, **options: Any) -> Stream[Any]:
    first, *others = (entry(name) for name in NAMES[:count])
    return first.merge(*others, by=time_of, **options)


@given(st.data(), streams(), st.sampled_from([0, 1, 3]), st.sampled_from([1, 3, 100]))
def test_a_merge_is_the_same_however_rows_arrive(
    data: st.DataObject, rows: list[list[Any]], delay_threshold: int, size: int
) -> None:
    expected = taken(rows, delay_threshold)
    stream = merged(delay_threshold=delay_threshold, late="side")
    graph = Graph(stream.collect(name="all"), stream.side("late").collect(name="late"))
    arriving = data.draw(arrivals(rows))
    out = graph.run_sequentially(arriving, batch_size=size)
    assert out["all"] == expected.rows
    for number, late in enumerate(expected.late):
        assert [row for row in out["late"] if row.stream == number] == late


@given(st.data(), streams(), st.integers(0, 1_000))
def test_a_merge_under_any_seed_is_that_of_a_sequential_run(
    data: st.DataObject, rows: list[list[Any]], seed: int
) -> None:
    arriving = data.draw(arrivals(rows))
    graph = merged(delay_threshold=1).collect()
    with ManualSystem(seed) as system:
        run = system.run(graph, batch_size=2)
        for name, some in arriving:
            run.send(name, some)
        assert run.finish() == graph.run_sequentially(arriving)


def test_rows_of_many_streams_sent_by_as_many_threads_are_merged() -> None:
    rows = [[Row(n, at, at // 3, 0) for at in range(3_000)] for n in range(3)]
    with ActorSystem(workers=2) as system:
        run = system.run(merged().collect(), batch_size=64)
        in_threads(lambda each: run.send(*each), zip(NAMES, rows, strict=True))
        assert run.finish(timeout=60) == taken(rows).rows


def test_a_row_is_ready_when_nothing_that_may_come_can_precede_it() -> None:
    seen: list[Any] = []
    graph = merged().to(seen.append)
    steps: list[tuple[str, Any, list[str]]] = [
        ("a", Row(0, 0, 5), []),
        ("c", Row(2, 0, 5), []),  # b is silent
        ("b", Row(1, 0, 5), ["a"]),  # a may bring another one of 5, which goes before b's
        ("a", Row(0, 1, 6), ["b"]),  # and so may b, before c's
        ("b", Watermark(6), ["c"]),
        ("c", Row(2, 1, 9), ["a"]),  # b may bring one of 6, but not before a's
    ]

    def arriving() -> Any:
        for name, row, gives in steps:
            before = len(seen)
            yield name, [row]
            assert [NAMES[row.stream] for row in seen[before:]] == gives

    graph.run_sequentially(arriving(), batch_size=1)
    assert seen[-1].time == 9


def test_rows_are_merged_by_the_column_of_each_stream() -> None:
    a, b = entry("a"), entry("b")
    graph = a.merge(b, by=("at", 1)).collect()
    rows: dict[str, list[Any]] = {"a": [{"at": 1}, {"at": 4}], "b": [("x", 2), ("y", 4)]}
    assert graph.run_sequentially(rows) == [{"at": 1}, ("x", 2), {"at": 4}, ("y", 4)]


def test_late_rows_are_counted_and_become_dead_letters() -> None:
    letters: list[DeadLetter] = []
    rows = [Row(0, 0, 5), Row(0, 1, 3), Row(0, 2, 2), Row(0, 3, 6)]
    counts = RowCounts()
    graph = merged(2, delay_threshold=2).collect()
    assert len(graph.run_sequentially({"a": rows}, row_counts=counts)) == 3
    assert counts.lates == {"merge": 1}
    with ActorSystem() as system:
        system.dead_letters.subscribe(letters.append)
        run = system.run(graph)
        run.send("a", rows)
        run.finish(timeout=60)
        assert run.statistics().late == 1
    assert [letter.message for letter in letters if letter.reason == "late"] == [rows[2]]


@pytest.mark.parametrize(
    "times",
    [
        [0.1, 0.2, 0.3],
        [Decimal(1), Decimal(2)],
        [datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2)],
        ["a", "b"],
        [(1, "a"), (1, "b")],
    ],
)
def test_times_are_whatever_has_an_order(times: list[Any]) -> None:
    rows = [[Row(n, at, time) for at, time in enumerate(times)] for n in range(2)]
    out = merged(2).collect().run_sequentially({"b": rows[1], "a": rows[0]})
    assert out == sorted(rows[0] + rows[1], key=lambda row: (row.time, row.stream))


@pytest.mark.parametrize("bad", [None, math.nan, "five", 1j, object()])
def test_a_wrong_time_is_an_error_of_its_row(bad: Any) -> None:
    rows = [Row(0, 0, 1), Row(0, 1, bad), Row(0, 2, 2)]
    graph = merged(2).collect()
    with pytest.raises(StreamError) as info:
        graph.run_sequentially({"b": [Row(1, 0, 1)], "a": rows})
    assert (info.value.operator, info.value.serial, info.value.row) == ("merge", 1, rows[1])
    skipping = merged(2, errors="skip").collect()
    counts = RowCounts()
    out = skipping.run_sequentially({"b": [Row(1, 0, 1)], "a": rows}, row_counts=counts)
    assert out == [rows[0], Row(1, 0, 1), rows[2]]
    assert [failure.row for failure in counts.failures] == [rows[1]]


def test_streams_whose_times_cannot_be_compared_are_an_error_of_the_first_row() -> None:
    graph = merged(2, errors="skip").collect()
    counts = RowCounts()
    words = [Row(1, 0, "x"), Row(1, 1, "y")]
    numbers = [Row(0, 0, 1), Row(0, 1, 2)]
    arriving = [("a", numbers), ("b", words)]
    assert graph.run_sequentially(arriving, row_counts=counts) == numbers
    assert [failure.row for failure in counts.failures] == words


def test_a_lag_before_times_that_cannot_be_negative_is_an_error_of_the_row() -> None:
    numpy = pytest.importorskip("numpy")
    rows = [(numpy.uint32(time),) for time in (1, 2, 8)]
    graph = entry("a").merge(entry("b"), by=0, delay_threshold=5, errors="skip").collect()
    counts = RowCounts()
    with pytest.warns(RuntimeWarning):
        graph.run_sequentially({"a": rows}, row_counts=counts)
    assert [failure.row for failure in counts.failures] == rows[:2]
    assert not counts.lates


def test_rows_ready_before_a_failure_have_gone_out() -> None:
    seen: list[Any] = []
    graph = merged(2).to(seen.append)
    with pytest.raises(StreamError, match="'merge' failed at input 2"):
        graph.run_sequentially(
            [("b", [Row(1, 0, 9)]), ("a", [Row(0, 0, 1), Row(0, 1, 2), Row(0, 2, None)])]
        )
    assert [row.time for row in seen] == [1, 2]


def test_bad_arguments_are_refused() -> None:
    a, b = entry("a"), entry("b")
    for options, said in [
        (
            {"by": 1.5},
            r"by= of merge\(\): expected a name, a place or a function of a row, got 1.5",
        ),
        ({"by": ("x", "y", "z")}, "a tuple of 2 values, got"),
        (
            {"by": "x", "delay_threshold": -1},
            "delay_threshold must be a length of time of zero or more, got -1",
        ),
        (
            {"by": "x", "delay_threshold": math.nan},
            "delay_threshold must be a length of time of zero or more, got nan",
        ),
        ({"by": "x", "late": "keep"}, "late must be one of drop, side, got 'keep'"),
    ]:
        with pytest.raises(GraphError, match=said):
            a.merge(b, **options)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"merge\(\) expects at least one stream"):
        a.merge(by="x")
    with pytest.raises(GraphError, match=r"merge\(\) expects streams, got 3"):
        a.merge(3, by="x")  # type: ignore[arg-type]
