"""Windows of whole days of a zone, from local midnight to local midnight."""

from __future__ import annotations

import pickle
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.streams import (
    GraphError,
    SlidingWindow,
    StreamError,
    TumblingWindow,
    Watermark,
    Window,
    entry,
)
from tests.streams.zones import HOUR, MINUTE, NEW_YORK, PARIS, changes, said, zones_in

DAY = timedelta(days=1)


def itself(time: Any) -> Any:
    return time


def windows(spec: TumblingWindow | SlidingWindow, times: list[Any]) -> list[Window[Any]]:
    found: list[Window[Any]] = entry("a").window(spec).collect().run_sequentially({"a": times})
    return found


@pytest.mark.parametrize(
    ("zone", "begin", "lengths"),
    [
        ("Europe/Paris", "2026-10-24T22:00", [25, 24]),
        ("Europe/Paris", "2026-03-28T23:00", [23, 24]),
        ("Europe/Dublin", "2026-10-24T23:00", [25, 24]),
        ("Europe/Dublin", "2026-03-29T00:00", [23, 24]),
        ("Australia/Lord_Howe", "2026-04-04T13:00", [24.5, 24]),
        ("Australia/Lord_Howe", "2026-10-03T13:30", [23.5, 24]),
        ("America/New_York", "2026-11-01T04:00", [25, 24]),
        ("Africa/Casablanca", "2026-02-14T23:00", [25, 24]),
        ("America/Sao_Paulo", "2018-02-17T02:00", [25, 24]),  # 23:00 comes twice
        ("America/Sao_Paulo", "2018-11-03T03:00", [24, 23, 24]),  # the second begins at 01:00
        ("America/Havana", "2026-11-01T04:00", [25, 24]),  # has midnight twice
        ("America/St_Johns", "2010-11-06T02:30", [24, 25, 24]),  # back over midnight
        ("America/Toronto", "1919-03-30T05:00", [23.5, 23.5]),  # from 23:30 to 00:30
        ("Pacific/Apia", "2011-12-29T10:00", [24, 24]),  # the 30th is between the two
    ],
)
def test_a_day_has_the_length_its_zone_says(zone: str, begin: str, lengths: list[float]) -> None:
    start = datetime.fromisoformat(begin).replace(tzinfo=UTC)
    times = [start + 15 * MINUTE + n * HOUR / 2 for n in range(2 * int(sum(lengths)))]
    found = windows(TumblingWindow(days=1, zone=zone, by=itself), times)
    assert len(found) == len(lengths)
    for window, length in zip(found, lengths, strict=True):
        assert window.start.astimezone(UTC) == start
        start += length * HOUR
        assert window.end.astimezone(UTC) == start
        assert window.value == [t for t in times if window.start.astimezone(UTC) <= t < start]
        assert zones_in(window[:2]) == {ZoneInfo(zone)}


@cache
def midnights(zone: tzinfo, change: datetime) -> list[datetime]:
    """Find the first minutes of the days around a change by looking at all of them."""
    found: list[datetime] = []
    latest = date.min
    for n in range(-8 * 24 * 60, 8 * 24 * 60):
        local = (change + n * MINUTE).astimezone(zone)
        if local.date() > latest:
            latest = local.date()
            found.append(change + n * MINUTE)
    return found[1:]


@given(changes, st.lists(st.integers(-200, 200), min_size=1), st.integers(1, 3))
def test_days_are_those_of_each_minutes_date(where: Any, offsets: list[int], days: int) -> None:
    zone, change = where
    change = change.replace(second=0)
    times = [(change + 17 * n * MINUTE).astimezone(zone) for n in offsets]
    starts = midnights(zone, change)
    spec = SlidingWindow(days * DAY, DAY, by=itself, zone=zone)
    skipped = str(zone) == "Pacific/Apia" and change.year == 2011
    for window in windows(spec, times):
        start, end = window.start.astimezone(UTC), window.end.astimezone(UTC)
        assert start in starts
        if not skipped:
            assert starts.index(end) - starts.index(start) == days
        assert window.value == [t for t in times if start <= t.astimezone(UTC) < end]
    if days == 1:
        found = windows(spec, times)
        assert sum(len(window.value) for window in found) == len(times)
        assert found == windows(TumblingWindow(days=1, zone=str(zone), by=itself), times)


@given(changes, st.lists(st.integers(-80, 80)), st.booleans())
def test_days_do_not_depend_on_a_rows_zone(where: Any, offsets: list[int], ordered: bool) -> None:
    zone, change = where
    times = [change + HOUR * n for n in sorted(offsets)]
    spec = TumblingWindow(days=1, zone=zone, by=itself, ordered=ordered)
    expected = windows(spec, times)
    assert said(windows(spec, said(times, NEW_YORK)), UTC) == said(expected, UTC)


def test_a_day_closes_at_a_watermark_at_its_end() -> None:
    spec = TumblingWindow(days=1, zone=PARIS, by=itself)
    begin = datetime(2026, 10, 25, tzinfo=PARIS)
    row = begin.astimezone(UTC) + 24.5 * HOUR
    end = Watermark(datetime(2026, 10, 26, tzinfo=PARIS))
    late = entry("a").window(spec, late="side").side("late").collect()
    early = Watermark(begin.astimezone(UTC) + 24.75 * HOUR)
    assert late.run_sequentially({"a": [row, early, row, end, row]}) == [row]


def test_weeks_start_on_mondays_or_at_an_origin() -> None:
    noon = datetime(2026, 10, 25, 12, tzinfo=PARIS)  # a Sunday
    for origin, day in ((0, 19), (date(2026, 1, 3), 24), (datetime(2026, 1, 4, tzinfo=PARIS), 25)):
        spec = TumblingWindow(days=7, zone="Europe/Paris", by=itself, origin=origin)
        [window] = windows(spec, [noon])
        assert window.start.isoformat() == f"2026-10-{day}T00:00:00+02:00"


def test_a_size_of_whole_days_is_those_of_the_zone() -> None:
    assert TumblingWindow(DAY, zone=PARIS, by=itself) == TumblingWindow(
        days=1, zone=PARIS, by=itself
    )
    spec = TumblingWindow(days=1, zone=PARIS, by=itself)
    assert replace(spec, ordered=True) == TumblingWindow(DAY, zone=PARIS, by=itself, ordered=True)
    spec = pickle.loads(pickle.dumps(TumblingWindow(days=1, zone=PARIS, by=datetime.fromisoformat)))
    [window] = windows(spec, ["2026-10-25T12:00+02:00"])
    assert window.end - window.start == DAY  # by the clock
    assert window.end.astimezone(UTC) - window.start.astimezone(UTC) == 25 * HOUR


def test_without_a_zone_a_day_has_24_hours() -> None:
    origin = datetime(2026, 10, 25, tzinfo=PARIS)
    [window] = windows(TumblingWindow(DAY, by=itself, origin=origin), [origin])
    assert window.end.isoformat() == "2026-10-25T23:00:00+01:00"


def test_a_fixed_offset_is_a_zone() -> None:
    zone = timezone(2 * HOUR)
    [window] = windows(
        TumblingWindow(days=1, zone=zone, by=itself), [datetime(2026, 1, 1, tzinfo=UTC)]
    )
    assert (window.start, window.end) == (
        datetime(2026, 1, 1, tzinfo=zone),
        datetime(2026, 1, 2, tzinfo=zone),
    )


@pytest.mark.parametrize("time", [datetime(2026, 1, 1), 5, None, date(2026, 1, 1)])
def test_a_time_without_a_zone_is_an_error_of_its_row(time: Any) -> None:
    spec = TumblingWindow(days=1, zone=PARIS, by=itself)
    with pytest.raises(StreamError, match="at input 1"):
        windows(spec, [datetime(2026, 1, 1, tzinfo=UTC), time])
    with pytest.raises(StreamError, match="at input 0") as raised:
        windows(spec, [time])
    assert "windows of days in Europe/Paris expect times with a zone" in str(raised.value.__cause__)


@pytest.mark.parametrize("time", [datetime.max, datetime.min])
def test_a_day_beyond_the_calendar_is_an_error_of_its_row(time: datetime) -> None:
    with pytest.raises(StreamError) as raised:
        windows(TumblingWindow(days=1, zone=PARIS, by=itself), [time.replace(tzinfo=UTC)])
    assert "the calendar has no window" in str(raised.value.__cause__)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"days": 1}, "needs zone="),
        ({"days": 1, "size": 2 * DAY, "zone": PARIS}, "replaces the size"),
        ({"days": 0, "zone": PARIS}, "days must be a whole number from 1"),
        ({"days": 1.5, "zone": PARIS}, "days must be a whole number from 1"),
        ({"days": 10**9, "zone": PARIS}, "days must be a whole number from 1 to 1000000"),
        ({"size": HOUR, "zone": PARIS}, "the size of windows in a zone must be whole days, got"),
        ({"size": 5, "zone": PARIS}, "the size of windows in a zone must be whole days, got 5"),
        ({"days": 1, "zone": "Europe/Pariss"}, "there is no zone 'Europe/Pariss' here"),
        ({"days": 1, "zone": "Europe"}, "there is no zone 'Europe' here"),
        ({"days": 1, "zone": ""}, "there is no zone '' here"),
        ({"days": 1, "zone": 2}, "zone must be the name of a zone or a ZoneInfo, got 2"),
        ({"days": 1, "zone": PARIS, "by": None}, "days= replaces|zone= is about time|size must be"),
        ({"days": 1, "zone": PARIS, "origin": 5}, "must be a date, or the time at which it begins"),
        ({"days": 1, "zone": PARIS, "origin": datetime(2026, 1, 1, 6)}, "must be a date, or"),
    ],
)
def test_a_wrong_day_or_zone_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        TumblingWindow(**{"by": itself, **options})
    if options.get("size") == 5:
        with pytest.raises(GraphError, match="the step of windows in a zone must be whole days"):
            SlidingWindow(DAY, HOUR, by=itself, zone=PARIS)
