"""The windows of a row by time, against exact fractions; and values that are not times."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.streams import (
    GraphError,
    RowCounts,
    SessionWindow,
    SlidingWindow,
    StreamError,
    TumblingWindow,
    Watermark,
    Window,
    entry,
)
from callboard.testing import ManualSystem

NAN, INF = math.nan, math.inf


def itself(row: Any) -> Any:
    return row


def windows(
    spec: TumblingWindow | SlidingWindow | SessionWindow, rows: list[Any], **options: Any
) -> list[Any]:
    graph = entry("rows").window(spec, **options).collect()
    found: list[Any] = graph.run_sequentially({"rows": rows})
    return found


class Oracle:
    """The windows of float times: each bound a fraction, rounded as floats are."""

    def __init__(self, size: float, step: float, origin: float) -> None:
        self.step, self.origin = Fraction(step), Fraction(origin)
        ratio = Fraction(size) / self.step
        self.steps = round(ratio)
        self.rest: Fraction | None = None
        # Size and step say the same length if they differ by no more than rounding twice: 4 ulps.
        whole = Fraction(float(self.steps * self.step))
        if abs(whole - Fraction(size)) > max(whole, Fraction(size)) / 2**50:
            self.steps = math.floor(ratio)
            self.rest = Fraction(size) - self.steps * self.step

    def start(self, number: int) -> float:
        return float(self.origin + Fraction(float(number * self.step)))

    def end(self, number: int) -> float:
        last = self.start(number + self.steps)
        return last if self.rest is None else float(Fraction(last) + self.rest)

    def windows(self, times: list[float]) -> list[Any]:
        found: dict[int, list[float]] = {}
        for time in times:
            near = math.floor((Fraction(time) - self.origin) / self.step)
            for number in range(near - self.steps - 5, near + 6):
                if self.start(number) <= time < self.end(number):
                    found.setdefault(number, []).append(time)
        return [Window(self.start(n), self.end(n), found[n]) for n in sorted(found)]


@st.composite
def layouts(draw: st.DrawFn) -> tuple[float, float, float]:
    """Size, step and origin."""
    step = draw(st.sampled_from([0.1, 0.3, 0.7, 1 / 3, 2.5, 1e-3]) | st.floats(0.01, 100.0))
    ratio = draw(st.sampled_from([1, 1, 2, 3, 10, 2.5, 0.5, 1 + 1e-12]))
    size = draw(st.sampled_from([step * ratio, float(f"{step * ratio:.12g}")]))
    return size, step, draw(st.sampled_from([0.0, 0.0, 0.05, -7.3, 1e6]))


@st.composite
def times(draw: st.DrawFn, step: float) -> float:
    """Times on a grid, or an ulp beside it, or anywhere."""
    number = draw(st.integers(-3000, 3000) | st.integers(-(10**9), 10**9))
    time = draw(st.sampled_from([number * step, number / 10, number / 10 * step, float(number)]))
    beside = [math.nextafter(time, INF), math.nextafter(time, -INF)]
    return draw(st.sampled_from([time, time, *beside]))


def test_a_step_a_hair_longer_than_the_size_leaves_a_gap() -> None:
    size, step = 40.9677430433, 40.9677430433004
    found = windows(SlidingWindow(size, step, by=itself), [0.0, (size + step) / 2, step])
    assert found == Oracle(size, step, 0.0).windows([0.0, step])
    assert [window.start for window in found] == [0.0, step]


@given(st.data(), layouts())
def test_a_rows_windows_hold_its_time(data: Any, layout: tuple[float, float, float]) -> None:
    size, step, origin = layout
    rows = data.draw(st.lists(times(step), max_size=20))
    found = windows(SlidingWindow(size, step, by=itself, origin=origin), rows)
    assert found == Oracle(size, step, origin).windows(rows)
    if size == step:
        assert windows(TumblingWindow(size, by=itself, origin=origin), rows) == found
        assert sum(len(window.value) for window in found) == len(rows)


@pytest.mark.parametrize("grid", [lambda i: i * 0.1, lambda i: i / 10, lambda i: -i * 0.1])
def test_no_row_of_a_grid_of_floats_is_lost(grid: Callable[[int], float]) -> None:
    rows = [grid(i) for i in range(300)]
    tumbling = windows(TumblingWindow(0.1, by=itself), rows)
    assert sorted(row for window in tumbling for row in window.value) == sorted(rows)
    sliding = windows(SlidingWindow(0.3, 0.1, by=itself), rows)
    assert sum(len(window.value) for window in sliding) == 3 * len(rows)
    assert all(after.start - window.start > 0.09 for window, after in pairwise(sliding))


@given(st.lists(st.floats(), max_size=10), layouts(), st.booleans())
def test_a_row_is_in_a_window_or_late_or_named_by_an_error(
    rows: list[float], layout: tuple[float, float, float], ordered: bool
) -> None:
    _, step, origin = layout
    specs: list[TumblingWindow | SessionWindow] = [
        TumblingWindow(step, by=itself, origin=origin, ordered=ordered),
        SessionWindow(step, itself, ordered=ordered),
    ]
    for spec in specs:
        stream = entry("rows").window(spec, late="side", errors="side")
        late, failed = stream.side("late"), stream.failures
        out = stream.flat_map(lambda window: window.value)
        graph = out.union(late, failed.map(lambda failure: failure.row)).collect()
        found = graph.run_sequentially({"rows": rows})
        assert sorted(map(repr, found)) == sorted(map(repr, rows))


@pytest.mark.parametrize("time", [NAN, INF, -INF, Decimal("NaN"), Decimal("Infinity"), None, "7"])
@pytest.mark.parametrize(
    "spec",
    [
        TumblingWindow(5, by=itself),
        SlidingWindow(6, 6, by=itself, ordered=True),
        SessionWindow(5, itself),
    ],
)
def test_a_wrong_time_is_an_error_of_its_row(
    spec: TumblingWindow | SlidingWindow | SessionWindow, time: Any
) -> None:
    with pytest.raises(StreamError, match="at input 1") as caught:
        windows(spec, [1, time, 2])
    assert repr(caught.value.row) == repr(time)
    left = windows(spec, [1, time, 2], errors="skip")
    assert [row for window in left for row in window.value] == [1, 2]


@pytest.mark.parametrize(
    "spec",
    [
        SlidingWindow(1000.0, 100.0, by=itself),
        TumblingWindow(100.0, by=itself),
        SessionWindow(100.0, itself),
    ],
)
@pytest.mark.parametrize("time", [1.7e18, 1.7e18 + 512, -1.7e18, 1e300])
def test_floats_beyond_windows_are_errors(
    spec: TumblingWindow | SlidingWindow | SessionWindow, time: float
) -> None:
    with pytest.raises(StreamError, match="at input 1") as caught:
        windows(spec, [1.0, time])
    assert caught.value.row == time
    assert "not precise enough" in str(caught.value.__cause__)


def test_integers_have_no_such_limit() -> None:
    large = 17 * 10**30
    found = windows(SlidingWindow(1000, 100, by=itself), [large + 7])
    assert [window.start for window in found] == [large - 900 + 100 * i for i in range(10)]


def test_decimals_before_the_origin_are_in_their_windows() -> None:
    spec = TumblingWindow(Decimal("0.1"), by=itself)
    assert windows(spec, [Decimal("-0.35"), Decimal("0.3")]) == [
        Window(Decimal("-0.4"), Decimal("-0.3"), [Decimal("-0.35")]),
        Window(Decimal("0.3"), Decimal("0.4"), [Decimal("0.3")]),
    ]
    with pytest.raises(StreamError, match="at input 0"):
        windows(spec, [Decimal("1e40")])


def test_windows_of_hours_cannot_be_laid_out_over_days() -> None:
    with pytest.raises(GraphError, match="cannot be laid out from the origin"):
        TumblingWindow(timedelta(hours=1), by=itself, origin=date(2026, 1, 1))
    with pytest.raises(GraphError, match="the origin 0: give origin=, a datetime at which one"):
        TumblingWindow(timedelta(hours=1), by=itself)


@pytest.mark.parametrize("length", [NAN, INF, -INF, 0, -1, "3", True, None, {1}, [1], 1j,
                                    Decimal("NaN"), Decimal("Infinity"), datetime.max])  # fmt: skip
def test_a_length_of_time_is_finite_and_more_than_none(length: Any) -> None:
    for make in (
        lambda: TumblingWindow(length, by=itself),
        lambda: SlidingWindow(10, length, by=itself),
        lambda: SlidingWindow(length, 10, by=itself),
        lambda: SessionWindow(length, itself),
    ):
        with pytest.raises(GraphError, match="must be a length of time above zero, got"):
            make()


@pytest.mark.parametrize("origin", [NAN, INF, "0", None, True, timedelta(1), 1e300])
def test_an_origin_is_a_time_from_which_windows_can_be_laid_out(origin: Any) -> None:
    with pytest.raises(GraphError, match="cannot be laid out from the origin"):
        TumblingWindow(5.0, by=itself, origin=origin)


@pytest.mark.parametrize("by", [None, itself])
def test_the_number_of_windows_that_a_row_is_in_has_a_bound(by: Any) -> None:
    with pytest.raises(
        GraphError, match=r"in 1,000,000,000 windows, and at most 100,000 are allowed"
    ):
        SlidingWindow(10**9, 1, by=by)
    assert SlidingWindow(100_000, 1, by=by)
    if by is not None:
        with pytest.raises(GraphError, match="at most 100,000 are allowed"):
            SlidingWindow(
                timedelta(days=2), timedelta(seconds=1), by=by, origin=datetime(2026, 1, 1)
            )


@given(
    st.lists(st.integers(-50, 50) | st.builds(Watermark, st.floats(-5.0, 5.0)), max_size=40),
    st.sampled_from(
        [TumblingWindow(0.1, by=itself), SlidingWindow(0.3, 0.1, by=itself, ordered=True)]
    ),
    st.sampled_from(["drop", "include"]),
    st.integers(1, 9),
    st.integers(0, 1000),
)
def test_windows_of_floats_are_the_same_in_a_system(
    rows: list[Any], spec: Any, late: Any, batch_size: int, seed: int
) -> None:
    scaled = entry("rows").map(lambda n: n / 10 if n % 7 else NAN)
    keyed = scaled.key_by(lambda t: round(t * 10) % 3 if t == t else 0, partitions=3)
    graph = keyed.window(spec, late=late, errors="skip").collect()
    counts = RowCounts()
    expected = graph.run_sequentially({"rows": rows}, row_counts=counts)
    with ManualSystem(seed) as system:
        run = system.run(graph, batch_size=batch_size)
        run.send("rows", rows)
        assert run.finish() == expected
        assert (run.row_counts.lates, run.row_counts.skips) == (counts.lates, counts.skips)
