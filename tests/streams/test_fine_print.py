"""Rare cases that the pages describe, in sequence and in systems."""

from __future__ import annotations

import math
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import FrameType
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.streams import (
    GraphError,
    RowCounts,
    SessionWindow,
    SlidingWindow,
    Stream,
    TumblingWindow,
    Watermark,
    Window,
    entry,
)
from callboard.testing import ManualSystem
from tests.streams.all_ways import first, itself, run, second

NAN = math.nan


# --- late rows that are included ------------------------------------------------------------------


def test_a_reopened_window_has_late_rows_only_and_closes_at_the_next_watermark() -> None:
    windowed = entry("rows").window(TumblingWindow(10, by=itself), late="include")
    rows = [1, Watermark(10), 2, 3, Watermark(9), Watermark(10), 4, 12, Watermark(11), 5]
    assert run(windowed, rows) == [
        Window(0, 10, [1]),
        Window(0, 10, [2, 3, 4]),  # at 11: neither 9 nor 10 brought time forward
        Window(0, 10, [5]),
        Window(10, 20, [12]),
    ]


def test_an_included_row_is_in_all_of_its_windows_closed_ones_and_open_ones() -> None:
    windowed = entry("rows").window(SlidingWindow(10, 5, by=itself), late="include")
    assert run(windowed, [7, Watermark(10), 8]) == [
        Window(0, 10, [7]),
        Window(0, 10, [8]),
        Window(5, 15, [7, 8]),
    ]


def test_a_reopened_window_of_ordered_rows_closes_at_the_next_row_of_its_key() -> None:
    spec = TumblingWindow(10, by=second, ordered=True)
    windowed = entry("rows").key_by(first).window(spec, len, late="include")
    rows = [("a", 1), ("a", 11), ("a", 2), ("b", 30), ("a", 11), ("a", 12)]
    assert run(windowed, rows) == [
        ("a", Window(0, 10, 1)),
        ("a", Window(0, 10, 1)),
        ("a", Window(10, 20, 3)),
        ("b", Window(30, 40, 1)),
    ]


def test_an_included_row_opens_a_session_or_joins_an_open_one() -> None:
    windowed = entry("rows").window(SessionWindow(5, itself), late="include")
    assert run(windowed, [1, 20, Watermark(10), 2, 17, Watermark(11), 3]) == [
        Window(1, 6, [1]),
        Window(2, 7, [2]),
        Window(3, 8, [3]),
        Window(17, 25, [20, 17]),
    ]


def test_joined_sessions_give_their_rows_session_by_session_and_then_as_they_came() -> None:
    windowed = entry("rows").window(SessionWindow(5, itself))
    assert run(windowed, [11, 1, 12, 3, 7, 2]) == [Window(1, 17, [1, 3, 11, 12, 7, 2])]


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize(
    ("spec", "refused", "left"),
    [
        (TumblingWindow(10, by=second), "b", ["a", "c"]),
        (SessionWindow(5, second), "b", ["a", "c"]),
        (SlidingWindow(3, 1), "bc", ["abc", "c"]),
    ],
)
def test_a_window_whose_function_raises_takes_no_other_with_it(
    keyed: bool, spec: Any, refused: str, left: list[str]
) -> None:
    def letters(rows: list[Any]) -> str:
        found = "".join(map(first, rows))
        if found == refused:
            raise ValueError(found)
        return found

    source: Any = entry("rows").key_by(lambda row: None) if keyed else entry("rows")
    windowed = source.window(spec, letters, errors="side")
    values = windowed.map(lambda out: (out[1] if keyed else out).value)
    failed = windowed.failures.map(lambda failure: (str(failure.error), failure.serial))
    found = run(values.union(failed), [("a", 1), ("b", 11), ("c", 21)])
    assert sorted(found, key=str) == [(refused, 3), *left]


# --- keys -----------------------------------------------------------------------------------------


class Leaving:
    """Is forgotten at a watermark; says how many rows it had."""

    def __init__(self) -> None:
        self.rows: list[Any] = []

    def receive(self, row: Any) -> None:
        self.rows.append(row)

    def on_watermark(self, time: Any) -> list[Any]:
        rows, self.rows = self.rows, []
        return [rows] if rows else []

    def is_idle(self) -> bool:
        return not self.rows

    def on_final(self) -> list[Any]:
        return [self.rows]


@pytest.mark.parametrize("releases_gil", [False, True])
def test_a_forgotten_key_that_comes_back_is_behind_the_others(releases_gil: bool) -> None:
    keyed = entry("rows").key_by(first, partitions=3)
    rows: list[Any] = [("a", 1), ("b", 30), Watermark(10), ("c", 31), ("a", 32), ("b", 33)]
    windowed = keyed.window(TumblingWindow(10, by=second), len)
    assert run(windowed, rows)[1:] == [
        ("b", Window(30, 40, 2)),
        ("c", Window(30, 40, 1)),
        ("a", Window(30, 40, 1)),
    ]
    objects: Stream[Any] = keyed.stateful(Leaving, releases_gil=releases_gil)
    assert run(objects, rows) == [
        [("a", 1)], [("b", 30)], [("c", 31)], [("a", 32)], [("b", 33)],
    ]  # fmt: skip


class Brittle:
    def __init__(self) -> None:
        self.rows: list[Any] = []

    def receive(self, row: Any) -> Any:
        self.rows.append(row)
        if row[1] < 0:
            raise ValueError("below zero")
        return iter([row]) if row[1] < 100 else (1 // 0 for _ in "1")

    def on_final(self) -> list[Any]:
        return [(self.rows[0][0], len(self.rows))]


@pytest.mark.parametrize("releases_gil", [False, True])
def test_a_key_whose_rows_all_raised_is_not_there(releases_gil: bool) -> None:
    keyed = entry("rows").key_by(first, partitions=3)
    rows = [("a", -1), ("b", 1), ("a", 100), ("b", -1), ("c", 2), ("a", -1)]
    objects = keyed.stateful(Brittle, errors="skip", releases_gil=releases_gil)
    assert run(objects, rows) == [("b", 1), ("c", 2), ("b", 2), ("c", 1)]

    def positive(row: Any) -> Any:
        if not 0 <= row[1] < 100:
            raise ValueError("refused")
        return row[1]

    largest = keyed.top_k(1, positive, errors="skip")
    assert run(largest, rows) == [("b", [("b", 1)]), ("c", [("c", 2)])]
    late = [("a", -1), ("b", 1), ("a", 3), Watermark(50)]
    windowed = keyed.window(TumblingWindow(10, by=positive), len, errors="skip")
    assert run(windowed, late) == [("b", Window(0, 10, 1)), ("a", Window(0, 10, 1))]


# --- watermarks -----------------------------------------------------------------------------------


class Noting:
    """Gives what it is told."""

    def receive(self, row: Any) -> list[Any]:
        return [row]

    def on_watermark(self, time: Any) -> list[Any]:
        return [f"at {time}"]


def test_watermarks_come_only_where_time_has_moved_and_not_at_the_end() -> None:
    marked = entry("rows").watermarks(itself, delay_threshold=1, every=2).stateful(Noting)
    rows = [5, 3, 4, 5, 2, 6, 7]
    assert run(marked, rows) == [5, 3, "at 4", 4, 5, 2, 6, "at 5", 7]


def test_serial_numbers_count_watermarks() -> None:
    def refuse(row: int) -> int:
        return 1 // (row - 7)

    marked = entry("rows").watermarks(itself).map(refuse, errors="side")
    failed = marked.failures.map(lambda failure: (failure.row, failure.serial))
    found = run(failed.union(marked.filter(lambda _: False)), [5, 6, 7])
    assert found == [(7, 4)]  # after 5, a watermark, 6, a watermark
    sampled = entry("rows").watermarks(itself).sample(every=2)
    assert run(sampled, [5, 6, 7]) == [5, 6, 7]


def test_rows_that_raise_do_not_count_for_watermarks_every_n_rows() -> None:
    marked = entry("rows").watermarks(lambda row: 12 // row, every=2, errors="skip")
    rows = [3, 0, 2, 0, 0, 1, 0, 4]
    assert run(marked.stateful(Noting), rows) == [3, 2, "at 6", 1, 4, "at 12"]


@pytest.mark.parametrize("time", [math.inf, -math.inf, NAN, Decimal("Infinity"), None])
@pytest.mark.parametrize("before", [[], [1, 2.5, Decimal(3)]])
def test_a_wrong_time_moves_no_watermark(time: Any, before: list[Any]) -> None:
    marked = entry("rows").watermarks(itself, errors="side")
    failed = marked.failures.map(lambda failure: (failure.row, failure.serial))
    found = run(marked.stateful(Noting).union(failed), [*before, time, 4])
    places = [*(told for row in before for told in (row, f"at {row}")), 4, "at 4"]
    assert found[:-3] + found[-2:] == places
    assert found[-3][1] == len(before)
    assert repr(found[-3][0]) == repr(time)


def test_a_row_for_whose_watermark_time_has_no_difference_is_an_error_of_the_row() -> None:
    marked = entry("rows").watermarks(itself, delay_threshold=Decimal(1), every=2, errors="side")
    failed = marked.failures.map(lambda failure: (failure.row, type(failure.error)))
    rows = [1, 2.5, 2, 2.25, 3.5, Decimal(4)]
    # Decimal takes no float away; the watermark that could not be is not tried again.
    found = run(marked.stateful(Noting).union(failed), rows)
    assert found == [1, (2.5, TypeError), 2, 2.25, 3.5, Decimal(4), "at 3"]


def test_a_watermark_is_never_after_the_time_that_it_lags_behind() -> None:
    numpy = pytest.importorskip("numpy")
    rows = [(numpy.uint8(1),), (numpy.uint8(5),)]
    counts = RowCounts()
    marked = (
        entry("rows").watermarks(first, delay_threshold=3, errors="skip").stateful(Noting).collect()
    )
    with pytest.warns(RuntimeWarning):
        found = marked.run_sequentially({"rows": rows}, row_counts=counts)
    assert found == [rows[1], "at 2"]
    (failure,) = counts.failures
    assert failure.row == rows[0]
    assert isinstance(failure.error, ValueError)
    assert "which is after it" in str(failure.error)


@pytest.mark.parametrize(
    ("rows", "delay_threshold", "times"),
    [
        ([2**70, 2**70 + 2, 5], 3, [2**70 - 3, 2**70 - 1]),
        ([0.5, 0.75, 0.5], 0.25, [0.25, 0.5]),
        ([-1e308, 1e308], 1e308, [-math.inf, 0.0]),
        ([True, 2], 1, [0, 1]),
        ([datetime(2026, 1, 2)], timedelta(days=1), [datetime(2026, 1, 1)]),
    ],
)
def test_a_watermark_is_the_latest_less_lag(
    rows: list[Any], delay_threshold: Any, times: list[Any]
) -> None:
    marked = entry("rows").watermarks(itself, delay_threshold=delay_threshold).stateful(Noting)
    assert [row for row in run(marked, rows) if isinstance(row, str)] == [f"at {t}" for t in times]


def test_watermarks_call_nothing_in_python_for_a_row_but_what_says_its_time() -> None:
    rows = range(1_000)
    graph = (
        entry("rows")
        .watermarks(first)
        .key_by(second)
        .window(SessionWindow(9, first), len)
        .collect()
    )
    called: Counter[str] = Counter()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            called[frame.f_code.co_qualname] += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        found = graph.run_sequentially({"rows": [(n, n % 2) for n in rows]}, batch_size=500)
    finally:
        sys.setprofile(before)
    assert found == [(0, Window(0, 1_007, 500)), (1, Window(1, 1_008, 500))]
    often = {name: count for name, count in called.items() if count >= len(rows) // 4}
    assert often == {"first": 2 * len(rows), "second": len(rows)}


@pytest.mark.parametrize("time", [NAN, Decimal("NaN"), None])
def test_a_watermark_has_a_time_that_can_be_compared(time: Any) -> None:
    with pytest.raises(ValueError, match="a watermark's time must be comparable, got"):
        Watermark(time)


def test_a_watermark_at_infinity_closes_all_windows() -> None:
    windowed = entry("rows").window(TumblingWindow(10, by=itself), late="side")
    rows = [1, 25, Watermark(math.inf), 100]
    assert run(windowed.union(windowed.side("late")), rows) == [
        Window(0, 10, [1]),
        Window(20, 30, [25]),
        100,
    ]


@pytest.mark.parametrize("delay_threshold", [NAN, math.inf, -1, "1", True, None])
def test_a_lag_is_a_finite_length_of_time(delay_threshold: Any) -> None:
    with pytest.raises(
        GraphError, match="delay_threshold must be a length of time of zero or more, got"
    ):
        entry("rows").watermarks(itself, delay_threshold=delay_threshold)


# --- merging by time ------------------------------------------------------------------------------


def test_rows_of_equal_times_come_in_the_order_of_their_streams() -> None:
    left, right = entry("left"), entry("right")
    seen: list[Any] = []
    graph = left.union(right, by=second).to(seen.append)
    with ManualSystem() as system:
        running = system.run(graph)
        running.send("right", [("r", 5)])
        running.send("left", [("l", 5)])
        system.run_until_idle()
        assert seen == [("l", 5)]  # another of 5 may come on the left
        running.send("left", [("l", 5), ("l", 6)])
        system.run_until_idle()
        assert seen == [("l", 5), ("l", 5), ("r", 5)]
        running.send("left", [Watermark(9)])
        running.send("right", [("r", 8)])
        running.finish()
    assert seen[3:] == [("l", 6), ("r", 8)]


def test_a_row_that_is_behind_its_stream_is_not_lost() -> None:
    merged = entry("left").union(entry("right"), by=itself)
    inputs = {"left": [5, 3, 9], "right": [4, 1, 7]}
    assert run(merged, inputs) == [3, 4, 1, 5, 7, 9]


# --- times that cannot be compared ----------------------------------------------------------------

HERE = datetime(2026, 1, 1)
THERE = datetime(2026, 1, 1, tzinfo=UTC)
DAY = timedelta(days=1)


def test_a_key_whose_times_are_of_another_kind_is_an_error_of_its_rows_and_of_no_others() -> None:
    keyed = entry("rows").key_by(second, partitions=1)  # those of one partition are compared
    windowed = keyed.window(SessionWindow(DAY, first), len, errors="side")
    failed = windowed.failures.map(lambda failure: failure.row)
    before = [(HERE, "a"), (THERE, "b"), (HERE, "a"), (HERE, "c"), (THERE, "b")]
    after = [(HERE + 9 * DAY, "c"), Watermark(HERE + 99 * DAY)]
    found = run(windowed.union(failed), [*before, Watermark(HERE + 5 * DAY), *after])
    assert found == [
        (THERE, "b"),
        (THERE, "b"),
        ("a", Window(HERE, HERE + DAY, 2)),
        ("c", Window(HERE, HERE + DAY, 1)),
        ("c", Window(HERE + 9 * DAY, HERE + 10 * DAY, 1)),
    ]


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_watermark_of_another_kind_is_an_error_and_moves_no_time(partitions: int) -> None:
    keyed = entry("rows").key_by(second, partitions=partitions)
    windowed = keyed.window(SessionWindow(DAY, first), len, errors="side")
    failed = windowed.failures.map(lambda failure: (failure.row, failure.serial))
    rows = [(HERE, key) for key in range(20)]
    marks = [Watermark(THERE + 5 * DAY), (HERE, 7), Watermark(HERE + 5 * DAY)]
    found = run(windowed.union(failed), [*rows, *marks])
    windows = [(key, Window(HERE, HERE + DAY, 2 if key == 7 else 1)) for key in range(20)]
    assert found == [(marks[0], 20), *windows]


# --- the largest, and the end ---------------------------------------------------------------------


def test_the_largest_are_not_said_twice_at_the_end() -> None:
    every_two = entry("rows").top_k(1, every=2)
    assert run(every_two, [1, 3, 2, 4]) == [[3], [4]]
    assert run(every_two, [1, 3, 2]) == [[3], [3]]
    assert run(every_two, []) == []
    assert run(entry("rows").top_k(1), []) == [[]]


def test_a_row_that_cannot_be_compared_is_an_error_of_its_own_and_of_no_other() -> None:
    largest = entry("rows").top_k(3, errors="side")
    failed = largest.failures.map(lambda failure: (failure.row, failure.serial))
    assert run(largest.union(failed), [1, None, 2, "3", 4, 5]) == [(None, 1), ("3", 3), [5, 4, 2]]


# --- one round at a time --------------------------------------------------------------------------


def test_a_window_of_one_round_is_the_smallest() -> None:
    rows = entry("rows").map(lambda row: row + 1, releases_gil=True)
    counted = rows.key_by(lambda row: row % 5, partitions=4).stateful(Noting, releases_gil=True)
    graph = counted.union(rows.filter(lambda row: row % 3 == 0)).collect()
    expected = graph.run_sequentially({"rows": range(500)})
    with ActorSystem(workers=3) as system:
        running = system.run(graph, window=1, batch_size=1)
        running.send("rows", range(500), timeout=60.0)
        assert running.finish(timeout=60.0) == expected
        with pytest.raises(ValueError, match="window"):
            system.run(graph, window=0)
