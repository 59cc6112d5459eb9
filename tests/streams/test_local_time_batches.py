"""Timestamps with a zone in Arrow batches are the same instants as datetimes in rows."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.streams import Band, Equal, Graph, RowCounts, StreamError, Watermark, entry
from tests.streams.batch_cases import DAY, rows_in
from tests.streams.zones import AUTUMN, HOUR, MINUTE, PARIS, SPRING, changes, said, zones_in

pa = pytest.importorskip("pyarrow")

NAMES = ("a", "b")
UNITS = ("s", "ms", "us")

minutes = st.lists(st.integers(-5, 5).map(lambda n: 15 * n), min_size=1, max_size=16)
wheres = st.sampled_from(
    [None, Equal("at"), Band("at", 20 * MINUTE), Equal("n") & Band("at", 45 * MINUTE)]
)
windows = st.sampled_from([{"within": 25 * MINUTE}, {"within": HOUR}, {"rows": 3}])


def batch_of(rows: list[dict[str, Any]], unit: str, zone: Any) -> Any:
    return pa.RecordBatch.from_pylist(
        rows, pa.schema({"at": pa.timestamp(unit, str(zone)), "n": pa.int64()})
    )


def beside(left: Any, right: Any) -> dict[str, Any]:
    nobody = {"at": None, "n": None}
    mine, other = left or nobody, right or nobody
    return {**mine, "at_right": other["at"], "n_right": other["n"]}


@given(
    changes,
    minutes,
    minutes,
    wheres,
    windows,
    st.sampled_from(["inner", "outer", "semi"]),
    st.tuples(st.sampled_from(UNITS), st.sampled_from(UNITS)),
    st.booleans(),
)
def test_joins_of_batches_are_those_of_their_rows_in_any_zone_and_unit(
    where_and_when: Any,
    a: list[int],
    b: list[int],
    where: Any,
    window: dict[str, Any],
    how: Any,
    units: tuple[str, str],
    one_zone: bool,
) -> None:
    zone, change = where_and_when
    zones = (zone, zone if one_zone else PARIS)
    rows = {
        name: [
            {"at": (change + n * MINUTE).astimezone(zone), "n": i % 3} for i, n in enumerate(each)
        ]
        for name, zone, each in zip(NAMES, zones, (a, b), strict=True)
    }
    batches = {
        name: [batch_of(rows[name], unit, zone)]
        for name, zone, unit in zip(NAMES, zones, units, strict=True)
    }
    options: dict[str, Any] = {
        "by": "at",
        "where": where,
        "how": how,
        "delay_threshold": 30 * MINUTE,
        **window,
    }
    combine = None if how == "semi" else beside
    counts, tally_of_rows = RowCounts(), RowCounts()
    of_batches = entry("a").join_batches(entry("b"), n=3, **options).collect()
    of_rows = entry("a").join(entry("b"), combine=combine, **options).collect()
    found = rows_in(of_batches.run_sequentially(batches, row_counts=counts))
    expected = of_rows.run_sequentially(rows, row_counts=tally_of_rows)
    assert said(found, UTC) == said(expected, UTC)
    assert {str(each) for each in zones_in(found)} <= {str(each) for each in (*zones, None)}
    assert sum(counts.lates.values()) == sum(tally_of_rows.lates.values())


@given(changes, minutes, minutes, st.sampled_from(UNITS))
def test_merges_are_those_of_rows(where: Any, a: list[int], b: list[int], unit: str) -> None:
    zone, change = where
    rows = {
        name: [{"at": (change + n * MINUTE).astimezone(zone), "n": n} for n in each]
        for name, each in zip(NAMES, (a, b), strict=True)
    }
    batches = {name: [batch_of(each, unit, zone)] for name, each in rows.items()}
    by: dict[str, Any] = {"by": "at", "delay_threshold": 15 * MINUTE}
    found = entry("a").merge_batches(entry("b"), **by).collect().run_sequentially(batches)
    expected = entry("a").merge(entry("b"), **by).collect().run_sequentially(rows)
    assert said(rows_in(found), UTC) == said(expected, UTC)


class Marks:
    """Tells of watermarks."""

    def receive(self, batch: Any) -> None:
        pass

    def on_watermark(self, time: datetime) -> list[datetime]:
        return [time]


@pytest.mark.parametrize("begin", [AUTUMN, SPRING])
@pytest.mark.parametrize("first", [True, False])
def test_watermarks_among_batches_are_handed_on_in_their_zone(begin: datetime, first: bool) -> None:
    times = [(begin + n * 20 * MINUTE).astimezone(PARIS) for n in range(6)]
    marks = [Watermark(time) for time in times]
    sent: list[Any] = [batch_of([{"at": times[2], "n": 0}], "us", PARIS), *marks[3:]]
    both = {"a": [*marks[:2], *sent] if first else sent, "b": marks}
    joined = entry("a").join_batches(entry("b"), by="at", within=HOUR, n=9)
    graph: Graph[Any] = joined.stateful(Marks).collect()
    found = graph.run_sequentially(both, batch_size=1)
    # They are held back by the row that is in its window.
    assert [time.isoformat() for time in found] == [time.isoformat() for time in times[:3]]
    assert zones_in(found) == {PARIS}


@pytest.mark.parametrize("types", [("date32", "date64"), ("date64", "date32")])
def test_dates_are_days_in_whichever_type(types: Any) -> None:
    days = [date(2026, 10, 24) + n * DAY for n in range(4)]
    batches = {
        name: [pa.record_batch({"day": pa.array(days, getattr(pa, each)())})]
        for name, each in zip(NAMES, types, strict=True)
    }
    graph = entry("a").join_batches(entry("b"), by="day", within=DAY).collect()
    found = rows_in(graph.run_sequentially(batches))
    rows = {name: [{"day": day} for day in days] for name in NAMES}
    pairs = entry("a").join(entry("b"), by="day", within=DAY).collect().run_sequentially(rows)
    assert [(row["day"], row["day_right"]) for row in found] == [
        (one["day"], other["day"]) for one, other in pairs
    ]


@pytest.mark.parametrize(
    ("mine", "other", "message"),
    [
        (pa.timestamp("us", "Europe/Paris"), pa.timestamp("us"),
         "it has timestamps, and others have timestamps with a zone"),
        (pa.timestamp("ns", "UTC"), pa.timestamp("us", "UTC"),
         "it has timestamps with a zone, and others have timestamps in ns with a zone"),
        (pa.duration("s"), pa.duration("ns"), "it has durations in ns, and others have durations"),
        (pa.date32(), pa.timestamp("us"), "it has timestamps, and others have dates"),
    ],
)  # fmt: skip
def test_times_of_different_sorts_are_refused(mine: Any, other: Any, message: str) -> None:
    graph = entry("a").join_batches(entry("b"), by="at", within=timedelta(1)).collect()
    sent = {
        name: [pa.record_batch({"at": pa.nulls(0, each)})]
        for name, each in (("a", mine), ("b", other))
    }
    with pytest.raises(StreamError) as raised:
        graph.run_sequentially(sent)
    assert f"stream 2, column 'at': {message}" in str(raised.value.__cause__)


def test_a_time_beyond_the_calendar_is_an_error_of_its_batch() -> None:
    graph = entry("a").join_batches(entry("b"), by="at", within=timedelta(1)).collect()
    far = pa.record_batch({"at": pa.array([2**62], pa.timestamp("s", "UTC"))})
    with pytest.raises(StreamError) as raised:
        graph.run_sequentially({"a": [far]})
    assert "stream 1, column 'at': Casting" in str(raised.value.__cause__)
