"""Aware datetimes are compared as instants, whatever their zone's clock does.

Streams near a change of clocks give what the same streams give in UTC, said in their own zone.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.streams import (
    Band,
    Equal,
    Graph,
    RowCounts,
    SessionWindow,
    SlidingWindow,
    Stream,
    StreamError,
    TumblingWindow,
    Watermark,
    entry,
)
from callboard.testing import ManualSystem
from tests.streams.zones import (
    AUTUMN,
    HOUR,
    MINUTE,
    NEW_YORK,
    PARIS,
    SPRING,
    changes,
    said,
    zones_in,
)

Row = tuple[datetime, int]
ORIGIN = datetime(2000, 1, 1, tzinfo=UTC)


def at(row: Row) -> datetime:
    return row[0]


def key(row: Row) -> int:
    return row[1] % 3


class Marks:
    """Tells of watermarks."""

    def __init__(self) -> None:
        self.count = 0

    def receive(self, row: Row) -> None:
        self.count += 1

    def on_watermark(self, time: datetime) -> list[Any]:
        return [(time, self.count)]


def joined(**options: Any) -> Callable[[Any], Stream[Any]]:
    """Make a join."""
    return lambda zone: entry("a").join(entry("b"), by=0, delay_threshold=10 * MINUTE, **options)


def windowed(spec: Callable[[Any], Any], late: Any = "drop") -> Callable[[Any], Stream[Any]]:
    """Make windows of keys, by watermarks."""
    return lambda zone: (
        entry("a")
        .watermarks(at, delay_threshold=20 * MINUTE)
        .key_by(key)
        .window(spec(zone), late=late)
    )


STREAMS: dict[str, Callable[[Any], Stream[Any]]] = {
    "merge": lambda zone: entry("a").merge(entry("b"), by=at),
    "merge with delay_threshold": lambda zone: entry("a").merge(
        entry("b"), by=0, delay_threshold=15 * MINUTE
    ),
    "merge of tuples": lambda zone: entry("a").merge(entry("b"), by=lambda row: row),
    "union": lambda zone: entry("a").union(entry("b"), by=at),
    "watermarks of a merge": lambda zone: (
        entry("a").watermarks(at).merge(entry("b").watermarks(at), by=at).stateful(Marks)
    ),
    "join": joined(within=25 * MINUTE),
    "join of equal times": joined(within=HOUR, where=Equal(0)),
    "join of near times": joined(within=HOUR, where=Band(0, 20 * MINUTE)),
    "join of both": joined(within=HOUR, where=Equal(key) & Band(0, 40 * MINUTE)),
    "join of keys with times": joined(within=HOUR, where=Equal(lambda row: (row[0], 1))),
    "join by a function": joined(within=HOUR, where=lambda a, b: (a[1] + b[1]) % 2 == 0),
    "join of rows": joined(rows=3),
    "three-step": joined(within=25 * MINUTE, rule="three-step"),
    "outer": joined(within=25 * MINUTE, how="outer"),
    "semi": joined(within=25 * MINUTE, how="semi"),
    "lanes": joined(within=25 * MINUTE, lanes=2),
    "watermarks of a join": lambda zone: (
        entry("a")
        .watermarks(at, delay_threshold=5 * MINUTE)
        .join(entry("b").watermarks(at, delay_threshold=5 * MINUTE), by=0, within=20 * MINUTE)
        .stateful(Marks)
    ),
    "tumbling": windowed(lambda zone: TumblingWindow(HOUR, by=at, origin=ORIGIN.astimezone(zone))),
    "tumbling, early and late": windowed(
        lambda zone: TumblingWindow(HOUR, by=at, origin=ORIGIN.astimezone(zone)), "include"
    ),
    "sliding": windowed(
        lambda zone: SlidingWindow(HOUR, 20 * MINUTE, by=at, origin=ORIGIN.astimezone(zone))
    ),
    "sessions": windowed(lambda zone: SessionWindow(30 * MINUTE, by=at)),
    "sessions, ordered": lambda zone: (
        entry("a").key_by(key).window(SessionWindow(30 * MINUTE, by=at, ordered=True))
    ),
    "days": windowed(lambda zone: TumblingWindow(timedelta(days=1), by=at, origin=ORIGIN)),
    "watermarks": lambda zone: (
        entry("a").watermarks(at, delay_threshold=10 * MINUTE, every=2).stateful(Marks)
    ),
    "watermarks without delay_threshold": lambda zone: entry("a").watermarks(at).stateful(Marks),
    "distinct": lambda zone: entry("a").distinct(at),
    "distinct tuples": lambda zone: entry("a").map(lambda row: (row[0], 1)).distinct(),
    "top_k": lambda zone: entry("a").top_k(3, at),
    "top_k of tuples": lambda zone: entry("a").top_k(3),
    "top_k, again and again": lambda zone: entry("a").key_by(key).top_k(2, at, every=2),
    "frequent": lambda zone: entry("a").frequent(at, epsilon=0.01, every=3),
    "count": lambda zone: entry("a").key_by(at).count(),
    "fold": lambda zone: entry("a").key_by(lambda row: (row[0], "x")).fold(0, lambda n, _: n + 1),
    "scan": lambda zone: entry("a").key_by(at, partitions=3).scan(0, lambda n, row: n + row[1]),
    "reduce": lambda zone: entry("a").key_by(at).reduce(len, every=2),
    "keyed distinct": lambda zone: entry("a").key_by(at).distinct(key),
    "keyed window": lambda zone: entry("a").key_by(at).window(SessionWindow(HOUR, by=at), len),
}

minutes = st.lists(st.integers(-5, 5).map(lambda n: 15 * n), min_size=4, max_size=24)


def streams_of(graph: Graph[Any], offsets: Any, change: datetime) -> dict[str, list[Row]]:
    """Make the rows of a graph's entries, of minutes around a change of clocks."""
    rows = [[(change + n * MINUTE, i) for i, n in enumerate(each)] for each in offsets]
    return dict(zip(graph.entries, rows, strict=False))


@pytest.mark.parametrize("name", STREAMS)
@given(changes, minutes, minutes, st.booleans())
def test_streams_give_what_they_give_in_utc(
    name: str, where: Any, a: list[int], b: list[int], in_order: bool
) -> None:
    zone, change = where
    offsets = [sorted(a), sorted(b)] if in_order else [a, b]
    of_utc, of_zone = (STREAMS[name](each).collect() for each in (UTC, zone))
    streams = streams_of(of_utc, offsets, change)
    counts, tally_of_zone = RowCounts(), RowCounts()
    expected = of_utc.run_sequentially(streams, row_counts=counts)
    found = of_zone.run_sequentially(said(streams, zone), row_counts=tally_of_zone)
    assert said(found, UTC) == expected
    assert tally_of_zone.lates == counts.lates
    if name != "days":
        assert zones_in(found) <= {zone}


@given(
    changes, minutes, minutes, st.sampled_from([*STREAMS]), st.integers(1, 5), st.integers(0, 99)
)
def test_systems_give_it_too(
    where: Any, a: list[int], b: list[int], name: str, batch_size: int, seed: int
) -> None:
    zone, change = where
    graph = STREAMS[name](zone).collect()
    streams = said(streams_of(graph, [a, b], change), zone)
    with ManualSystem(seed) as system:
        run = system.run(graph, batch_size=batch_size)
        for entry_name, rows in streams.items():
            run.send(entry_name, rows)
        assert said(run.finish(), UTC) == said(graph.run_sequentially(streams), UTC)


@given(st.lists(st.tuples(st.integers(-12, 12), st.sampled_from([PARIS, NEW_YORK, UTC]))))
def test_rows_of_one_stream_may_have_several_zones(rows: list[Any]) -> None:
    given = [((AUTUMN + 15 * n * MINUTE).astimezone(zone), i) for i, (n, zone) in enumerate(rows)]
    for name in (
        "merge with delay_threshold",
        "join of equal times",
        "sessions",
        "distinct",
        "top_k",
        "count",
    ):
        graph = STREAMS[name](PARIS).collect()
        streams = dict.fromkeys(graph.entries, given)
        assert said(graph.run_sequentially(streams), UTC) == graph.run_sequentially(
            said(streams, UTC)
        )


# --- the night of the change in Paris


def night(begin: datetime, count: int = 24, every: int = 10) -> list[Row]:
    """Make rows of Paris, ten minutes apart."""
    return [((begin + i * every * MINUTE).astimezone(PARIS), i) for i in range(count)]


def test_a_repeated_hour_is_two_windows_and_says_which() -> None:
    spec = TumblingWindow(HOUR, by=at, origin=datetime(2026, 1, 1, tzinfo=PARIS))
    found = entry("a").window(spec, len).collect().run_sequentially({"a": night(AUTUMN, 12)})
    assert [(w.start.isoformat(), w.end.isoformat(), w.value) for w in found] == [
        ("2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", 6),
        ("2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00", 6),
    ]


@pytest.mark.parametrize(("begin", "gap"), [(SPRING + 50 * MINUTE, 20), (AUTUMN + 50 * MINUTE, 80)])
def test_sessions_last_as_their_rows_are_apart(begin: datetime, gap: int) -> None:
    rows = [(begin.astimezone(PARIS), 0), ((begin + gap * MINUTE).astimezone(PARIS), 1)]
    graph = entry("a").window(SessionWindow(30 * MINUTE, by=at), len).collect()
    found = graph.run_sequentially({"a": rows})
    assert [window.value for window in found] == ([2] if gap < 30 else [1, 1])
    assert found[0].start is rows[0][0]
    assert found[-1].end.astimezone(UTC) == begin + (gap + 30) * MINUTE
    assert found[-1].end.tzinfo is PARIS


def test_an_end_where_a_clock_jumps_is_said_as_the_clock_says_it() -> None:
    rows = [(datetime(2026, 3, 29, 1, 50, tzinfo=PARIS), 0)]
    [window] = (
        entry("a").window(SessionWindow(30 * MINUTE, by=at)).collect().run_sequentially({"a": rows})
    )
    assert window.end.isoformat() == "2026-03-29T03:20:00+02:00"


def test_watermarks_are_equal_as_moments_are() -> None:
    first = datetime(2026, 10, 25, 2, 30, tzinfo=PARIS)
    assert Watermark(first) != Watermark(first.replace(fold=1))
    same = Watermark(first.astimezone(NEW_YORK))
    assert Watermark(first) == same
    assert len({Watermark(first), same}) == 1
    assert same.time.tzinfo is NEW_YORK


def test_the_last_time_of_a_zone_is_a_watermark() -> None:
    end: Any = Watermark(datetime.max.replace(tzinfo=NEW_YORK))
    graph = entry("a").merge(entry("b"), by=at).collect()
    rows = night(AUTUMN)
    assert graph.run_sequentially({"a": [end], "b": rows}) == rows


def test_watermarks_go_by_datetimes_without_a_lag() -> None:
    noon = datetime(2026, 1, 1, 12)
    rows = [(noon, 0), (noon + HOUR, 1)]
    graph: Graph[Any] = entry("a").watermarks(at).stateful(Marks).collect()
    assert graph.run_sequentially({"a": rows}) == [(noon, 1), (noon + HOUR, 2)]


@pytest.mark.parametrize("name", ["merge", "join", "top_k", "watermarks", "sessions", "tumbling"])
def test_a_naive_time_among_aware_ones_is_an_error_of_its_row(name: str) -> None:
    graph = STREAMS[name](PARIS).collect()
    rows = night(AUTUMN, 3)
    naive = (datetime(2026, 10, 25, 3), 1)
    others: dict[str, list[Any]] = {each: [] for each in graph.entries}
    with pytest.raises(StreamError, match="at input 1") as raised:
        graph.run_sequentially({**others, "a": [rows[0], naive]})
    assert "naive" in str(raised.value.__cause__)
    without = graph.run_sequentially({**others, "a": rows})
    assert zones_in(without) <= {PARIS}


def test_naive_times_stay_naive() -> None:
    rows = [(row[0].replace(tzinfo=None, fold=0), row[1]) for row in night(AUTUMN - HOUR, 12)]
    for name in ("merge with delay_threshold", "sessions", "count", "top_k"):
        found = STREAMS[name](None).collect()
        assert zones_in(found.run_sequentially(dict.fromkeys(found.entries, rows))) == {None}


@pytest.mark.parametrize("zone", [PARIS, UTC])
def test_a_stream_that_was_idle_is_late_by_moments(zone: Any) -> None:
    early, late = ((AUTUMN + n * MINUTE).astimezone(zone) for n in (50, 70))  # 02:50, 02:10
    graph = entry("a").merge(entry("b"), by=at, idle_timeout=4).collect()
    for first, second, lates in ((early, late, 0), (late, early, 1)):
        with ManualSystem() as system:
            run = system.run(graph)
            run.send("a", [(first, 0)])
            system.advance(5)
            run.send("b", [(second, 1)])
            assert len(run.finish()) == 2 - lates
            assert run.row_counts.lates.total() == lates
