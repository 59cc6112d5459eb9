"""Times in tasks: an instant is an instant, whatever the zone of the session."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

from callboard.spark import by_key, join_frames, spark_graph
from callboard.spark.frames.frame_rows import dicts_of, record_batch
from callboard.spark.frames.times import mixes_clocks
from callboard.streams import Equal, SessionWindow, TumblingWindow, entry

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

ZONES = {  # a change of clocks in each, and a time some hours before it, in UTC
    "America/New_York": "2024-11-03T03:00:00",
    "Europe/Paris": "2024-03-30T22:00:00",
    "Australia/Lord_Howe": "2024-04-06T12:00:00",  # by half an hour
    "Pacific/Apia": "2011-12-30T07:00:00",  # which skips a day
    "Europe/Dublin": "2024-10-26T22:00:00",  # whose winter is its exception
    "GMT+2": "2024-11-03T03:00:00",  # Java knows it, and Python does not
}
STEP = timedelta(minutes=20)
COUNT = 24
HOUR = timedelta(hours=1)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture(params=ZONES)
def zone(request: pytest.FixtureRequest, spark: SparkSession) -> Iterator[str]:
    """Set the session's zone."""
    spark.conf.set("spark.sql.session.timeZone", request.param)
    yield request.param
    spark.conf.unset("spark.sql.session.timeZone")


def rows(spark: SparkSession, zone: str, name: str) -> DataFrame:
    """Give a row each 20 minutes, over the change; of two users."""
    start = int(datetime.fromisoformat(ZONES[zone]).replace(tzinfo=UTC).timestamp())
    return spark.range(COUNT).selectExpr(
        f"timestamp_seconds({start} + id * 1200) as at",
        "if(id % 2 = 0, 'ann', 'bob') as user",
        f"id as {name}",
    )


def test_joins_windows_and_sessions_in_spark_know_no_clocks(spark: SparkSession, zone: str) -> None:
    left, right = rows(spark, zone, "n"), rows(spark, zone, "m")
    near = entry("left").join(
        entry("right"),
        by="at",
        within=2 * STEP,
        where=Equal("user"),
        combine=lambda one, other: (one["n"], other["m"]),
    )
    pairs = join_frames(
        left, right, near, key="user", order="at", partitions=2, schema="n long, m long"
    )
    wanted = [(n, m) for n in range(COUNT) for m in range(COUNT) if abs(n - m) in (0, 2)]
    assert sorted(map(tuple, pairs.collect())) == wanted

    def count(found: Any) -> tuple[Any, ...]:
        return found[0], found[1].start, len(found[1].value)

    keyed = entry("x").key_by(lambda row: row["user"], partitions=4)
    schema = "user string, start timestamp, n long"
    ordered = by_key(left, "user", order="at", partitions=2)
    windows: dict[str, Any] = {
        "hours": TumblingWindow(HOUR, by=lambda row: row["at"], origin=EPOCH, ordered=True),
        "visits": SessionWindow(3 * STEP, by=lambda row: row["at"], ordered=True),
    }
    for name, window in windows.items():
        graph = spark_graph(
            keyed.window(window, list).map(count), rows="dict", schema=schema
        ).map_in_arrow
        found = ordered.mapInArrow(graph, schema).selectExpr("user", "unix_seconds(start) s", "n")
        seconds: dict[str, list[tuple[int, int]]] = {}
        for user, second, n in sorted(map(tuple, found.collect())):
            seconds.setdefault(user, []).append((second, n))
        assert [*seconds] == ["ann", "bob"]
        for spans in seconds.values():
            if name == "visits":
                assert [n for _, n in spans] == [COUNT // 2]
            else:
                assert sum(n for _, n in spans) == COUNT // 2
                steps = {two[0] - one[0] for one, two in pairwise(spans)}
                assert steps == {3600}


def test_times_of_all_kinds_come_and_go_as_they_are(spark: SparkSession, zone: str) -> None:
    frame = rows(spark, zone, "n").selectExpr(
        "at",
        "timestamp_ntz'2024-03-10 02:30:00' as clock",  # which New York's clocks never show
        "date'2024-03-10' as day",
        "array(at, null) as several",
        "named_struct('at', at) as pair",
        "map('at', at) as named",
    )
    wanted = by_micros(frame)
    graph = spark_graph(entry("x"), rows="dict", schema=frame.schema)
    assert by_micros(frame.mapInArrow(graph.map_in_arrow, frame.schema)) == wanted
    kinds = entry("x").map(lambda row: (repr(row["clock"]), repr(row["day"])))
    said = spark_graph(kinds, rows="dict", schema="clock string, day string").map_in_arrow
    [kind] = frame.limit(1).mapInArrow(said, "clock string, day string").collect()
    assert tuple(kind) == (repr(datetime(2024, 3, 10, 2, 30)), repr(date(2024, 3, 10)))


def by_micros(frame: DataFrame) -> list[Any]:
    found = frame.selectExpr(
        "unix_micros(at) at",
        "string(clock)",
        "string(day)",
        "unix_micros(several[0])",
        "size(several)",
        "unix_micros(pair.at)",
        "unix_micros(named['at'])",
    )
    return sorted(map(tuple, found.collect()))


# --- without Spark --------------------------------------------------------------------------------


def test_instants_of_a_zone_that_python_does_not_know_come_in_utc() -> None:
    noon = datetime(2024, 1, 1, 12, tzinfo=UTC)
    odd = pa.timestamp("us", "PST")
    types = [odd, pa.list_(odd), pa.map_(pa.string(), odd), pa.struct([("a", odd)])]
    values = [noon, [noon], [("a", noon)], {"a": noon}]
    columns = [pa.array([value], kind) for value, kind in zip(values, types, strict=True)]
    [row] = dicts_of([pa.RecordBatch.from_arrays(columns, ["a", "b", "c", "d"])])
    assert [*row.values()] == values


def test_a_naive_time_is_of_the_process_in_a_column_of_instants() -> None:
    schema = pa.schema([("at", pa.timestamp("us", "UTC"))])
    for at in (datetime(2024, 1, 1), datetime(2024, 11, 3, 1, 30, fold=1)):
        batch = record_batch(schema, [(at,), (None,)])
        assert batch.column(0).to_pylist() == [at.astimezone(UTC), None]


def test_clocks_and_instants_are_told_apart_inside_of_other_types() -> None:
    clock, instant = pa.timestamp("ms"), pa.timestamp("us", "UTC")
    for one, other, mixed in (
        (clock, instant, True),
        (instant, clock, True),
        (pa.date32(), instant, True),
        (instant, pa.date32(), True),
        (pa.date32(), clock, False),
        (pa.timestamp("s", "Europe/Paris"), instant, False),
        (pa.string(), instant, False),
    ):
        assert mixes_clocks(one, other) is mixed
        assert mixes_clocks(pa.list_(one), pa.list_(other)) is mixed
        assert mixes_clocks(pa.map_(pa.int8(), one), pa.map_(pa.int8(), other)) is mixed
        assert mixes_clocks(pa.struct([("a", one)]), pa.struct([("a", other)])) is mixed
