"""Windows by count and by event time, watermarks, and rows that are late."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from callboard.streams import (
    RowCounts,
    SessionWindow,
    SlidingWindow,
    Stream,
    TumblingWindow,
    Watermark,
    Window,
    entry,
)
from callboard.streams.programs.windows.window_states import TimedWindows


def windows(
    graph: Callable[[Stream[Any]], Stream[Any]], rows: list[Any], counts: RowCounts | None = None
) -> list[Any]:
    stream = graph(entry("rows"))
    return stream.collect().run_sequentially({"rows": rows}, row_counts=counts)


def itself(row: Any) -> Any:
    return row


def test_windows_by_count_follow_each_other_and_the_last_may_be_short() -> None:
    assert windows(lambda s: s.window(TumblingWindow(2)), list("abc")) == [
        Window(0, 2, ["a", "b"]),
        Window(2, 3, ["c"]),
    ]


def test_sliding_windows_by_count_overlap() -> None:
    assert windows(lambda s: s.window(SlidingWindow(3, 2), "".join), list("abcde")) == [
        Window(0, 3, "abc"),
        Window(2, 5, "cde"),
        Window(4, 5, "e"),
    ]


def test_windows_with_gaps_leave_rows_out() -> None:
    assert windows(lambda s: s.window(SlidingWindow(1, 2), "".join), list("abcd")) == [
        Window(0, 1, "a"),
        Window(2, 3, "c"),
    ]


def test_a_window_by_time_closes_at_the_watermark_that_comes_to_its_end() -> None:
    rows = [1, 7, Watermark(9), 12, Watermark(10), "after"]
    found = windows(
        lambda s: s.window(TumblingWindow(10, by=lambda row: row if row != "after" else 30), tuple),
        rows,
    )
    assert found == [Window(0, 10, (1, 7)), Window(10, 20, (12,)), Window(30, 40, ("after",))]


def test_an_event_is_in_all_sliding_windows_over_its_time() -> None:
    found = windows(lambda s: s.window(SlidingWindow(10, 5, by=itself)), [7, Watermark(100)])
    assert found == [Window(0, 10, [7]), Window(5, 15, [7])]


def test_a_session_ends_when_the_gap_is_over_and_a_row_between_two_joins_them() -> None:
    def sessions(stream: Stream[Any]) -> Stream[Any]:
        return stream.window(SessionWindow(5, by=itself), sorted)

    assert windows(sessions, [1, 3, 20, Watermark(8), 22]) == [
        Window(1, 8, [1, 3]),
        Window(20, 27, [20, 22]),
    ]
    assert windows(sessions, [1, 9, 5]) == [Window(1, 14, [1, 5, 9])]
    assert windows(sessions, [1, 6]) == [Window(1, 6, [1]), Window(6, 11, [6])]


def test_rows_in_order_of_time_close_windows_themselves() -> None:
    spec = SessionWindow(5, by=lambda row: row[1], ordered=True)
    clicks = [("ann", 1), ("bob", 2), ("ann", 3), ("ann", 30), ("bob", 31)]
    ends: list[Any] = []
    stream = entry("clicks").key_by(lambda row: row[0]).window(spec, len)
    graph = stream.to(ends.append)
    graph.run_sequentially([("clicks", clicks[:4])])
    assert ends == [("ann", Window(1, 8, 2)), ("ann", Window(30, 35, 1)), ("bob", Window(2, 7, 1))]


def test_times_may_be_datetimes() -> None:
    noon = datetime(2026, 1, 1, 12)
    spec = TumblingWindow(timedelta(hours=1), by=itself, origin=noon)
    times = [noon + timedelta(minutes=minutes) for minutes in (5, 59, 60)]
    assert windows(lambda s: s.window(spec, len), times) == [
        Window(noon, noon + timedelta(hours=1), 2),
        Window(noon + timedelta(hours=1), noon + timedelta(hours=2), 1),
    ]


def test_watermarks_follow_the_latest_time_at_a_distance() -> None:
    marked = entry("rows").watermarks(itself, delay_threshold=3, every=2)
    found = windows(lambda s: marked.window(TumblingWindow(10, by=itself)), [8, 12, 9, 13, 7, 14])
    # 12 - 3 is before the first window's end, and 13 - 3 is its end: 7 is late.
    assert found == [Window(0, 10, [8, 9]), Window(10, 20, [12, 13, 14])]


LATE = [1, Watermark(10), 2, 11, Watermark(20)]


def test_a_late_row_is_dropped_and_counted() -> None:
    counts = RowCounts()
    found = windows(lambda s: s.window(TumblingWindow(10, by=itself), name="tens"), LATE, counts)
    assert found == [Window(0, 10, [1]), Window(10, 20, [11])]
    assert counts.lates == {"tens": 1}


@pytest.mark.parametrize("spec", [TumblingWindow(10, by=itself), SessionWindow(8, by=itself)])
def test_a_late_row_can_go_to_a_side_output(spec: TumblingWindow | SessionWindow) -> None:
    stream = entry("rows").window(spec, late="side")
    assert stream.side("late").collect().run_sequentially({"rows": LATE}) == [2]


def test_a_row_that_is_late_for_one_of_its_windows_is_in_the_others() -> None:
    rows = [7, Watermark(10), 8]
    found = windows(lambda s: s.window(SlidingWindow(10, 5, by=itself)), rows)
    assert found == [Window(0, 10, [7]), Window(5, 15, [7, 8])]


def test_a_key_that_comes_after_a_watermark_knows_the_time() -> None:
    stream = (
        entry("rows").key_by(lambda row: row[0]).window(TumblingWindow(10, by=lambda row: row[1]))
    )
    counts = RowCounts()
    rows = [("a", 1), Watermark(10), ("b", 2), ("a", 3)]
    assert stream.collect().run_sequentially({"rows": rows}, row_counts=counts) == [
        ("a", Window(0, 10, [("a", 1)]))
    ]
    assert sum(counts.lates.values()) == 2


def test_a_watermark_that_goes_back_changes_nothing() -> None:
    rows = [Watermark(20), 25, Watermark(5), 15]
    counts = RowCounts()
    found = windows(lambda s: s.window(TumblingWindow(10, by=itself)), rows, counts)
    assert found == [Window(20, 30, [25])]
    assert sum(counts.lates.values()) == 1


def test_a_watermark_asks_only_the_keys_that_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    on_watermark = TimedWindows.on_watermark

    def noted(state: TimedWindows, time: Any) -> Any:
        asked.append(time)
        return on_watermark(state, time)

    monkeypatch.setattr(TimedWindows, "on_watermark", noted)
    rows: list[Any] = [(key, 10 * key) for key in range(100)]
    marks = [Watermark(10), Watermark(11), Watermark(30), Watermark(30)]
    stream = entry("rows").key_by(lambda row: row[0])
    windowed = stream.window(TumblingWindow(10, by=lambda row: row[1]), len)
    closed = windowed.collect().run_sequentially({"rows": rows + marks})
    assert asked == [10, 30, 30]
    assert [key for key, _ in closed] == list(range(100))


class Time(int):
    """A time that counts how often it is compared."""

    compared = 0

    def __add__(self, other: int) -> Time:
        return Time(int(self) + other)

    def __sub__(self, other: int) -> Time:
        return Time(int(self) - other)

    def __lt__(self, other: int) -> bool:
        Time.compared += 1
        return int(self) < int(other)

    def __gt__(self, other: int) -> bool:
        Time.compared += 1
        return int(self) > int(other)

    def __le__(self, other: int) -> bool:
        Time.compared += 1
        return int(self) <= int(other)


def test_a_row_in_order_is_compared_with_few_of_the_sessions_that_are_open() -> None:
    times = [Time(100 * n) for n in range(1_000)]  # each is a session of its own
    Time.compared = 0
    sessions = windows(lambda s: s.window(SessionWindow(10, by=itself), len), times)
    assert sessions == [Window(100 * n, 100 * n + 10, 1) for n in range(1_000)]
    assert Time.compared < 20 * len(times)


def test_a_row_between_many_sessions_joins_those_that_its_gap_reaches() -> None:
    times = [*range(0, 1_000, 20), 510, 505, 3, 1_500, 1_010]
    sessions = windows(lambda s: s.window(SessionWindow(15, by=itself)), times)
    apart = [Window(n, n + 15, [n]) for n in range(20, 1_000, 20) if n not in (500, 520)]
    joined = [Window(0, 18, [0, 3]), Window(500, 535, [500, 520, 510, 505])]
    late = [Window(1_010, 1_025, [1_010]), Window(1_500, 1_515, [1_500])]
    assert sessions == sorted(apart + joined + late)
