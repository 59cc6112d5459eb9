"""`format("callboard")`: published rows are read, each once, across restarts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from callboard.core.errors import ConfigError
from callboard.remote import PublishedRows, connect
from callboard.remote.errors import NotPublished
from callboard.spark.source.data_source import CallboardSource
from callboard.spark.source.published_range import divided
from jobs import Failure, Query, forget_the_last_commit
from sums import failing

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine


def publish(url: str, start: int, end: int) -> None:
    """Have the actor publish the numbers of a range."""
    publish_rows(url, "echo", start, range(start, end))


def publish_rows(url: str, entry: str, batch: int, rows: Iterable[Any]) -> None:
    with connect(url) as connection:
        with connection.upload(entry, job=entry, batch=batch) as upload:
            upload.send_many(rows)
        assert upload.staged is not None
        connection.commit(entry, batch, [upload.staged])
        while connection.health().result(60)["unapplied"]:
            pass


@contextmanager
def published(url: str) -> Iterator[PublishedRows]:
    with connect(url) as connection:
        yield connection.published("echo")


def load(spark: SparkSession, url: str, **options: str) -> DataFrame:
    reader = spark.read.format("callboard").option("URL", url).option("entry", "echo")
    return reader.options(**options).load()


# --- batches --------------------------------------------------------------------------------------


def test_a_frame_has_what_is_published_and_not_released(known: SparkSession, url: str) -> None:
    assert load(known, url).collect() == []
    publish(url, 0, 10_000)
    frame = load(known, url, partitions="3")
    assert frame.schema.simpleString() == "struct<id:bigint,text:string>"
    for _ in range(2):
        rows = frame.collect()
        assert [tuple(row) for row in rows] == [(row, f"text {row}") for row in range(10_000)]
    assert frame.rdd.getNumPartitions() == 3
    with published(url) as there:
        there.release(9_998)
    assert [row.id for row in load(known, url, partitions="3").collect()] == [9_998, 9_999]


def test_a_retried_task_reads_the_same_rows(known: SparkSession, url: str, tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    publish(url, 0, 20_000)
    frame = load(known, url, partitions="2").select("id")
    rows = frame.mapInArrow(failing(tmp_path / "marks", 1), "id long").collect()
    assert len(list((tmp_path / "marks").iterdir())) == 1
    assert [row.id for row in rows] == [*range(20_000)]


NOON = datetime(2024, 5, 17, 12)
SOME = (1, 2, "text", NOON, NOON.replace(tzinfo=UTC), NOON.date(), Decimal("1.50"), [1, 2])


def test_types_become_those_of_spark(known: SparkSession, url: str, failure_of: Failure) -> None:
    publish_rows(url, "kinds", 0, [SOME, (2, *[None] * 7)])
    reader = known.read.format("callboard").option("url", url).option("entry", "kinds")
    first, second = reader.load().orderBy("key").collect()
    assert [*first][:4] == [1, 2, "text", NOON]
    assert first.instant.astimezone(UTC) == SOME[4]
    assert [*first][5:] == [NOON.date(), Decimal("1.50"), [1, 2]]
    assert [*second] == [2, *[None] * 7]
    other = "key int, small int, long_text int, local timestamp_ntz, instant timestamp, day date, "
    shown = failure_of(reader.schema(other + "price decimal(10,2), list array<int>").load().collect)
    assert "do not fit key: int32" in shown
    assert "Failed to parse string: 'text'" in shown


KINDS = (
    "key int, small int, long_text string, local {}, instant {}, day {}, price decimal(10,2), "
    "list array<int>"
)


def test_times_with_and_without_a_zone_stay_what_they_are(
    known: SparkSession, url: str, failure_of: Failure
) -> None:
    publish_rows(url, "kinds", 0, [SOME])
    known.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        reader = known.read.format("callboard").option("url", url).option("entry", "kinds")
        said = reader.schema(KINDS.format("timestamp_ntz", "timestamp", "date"))
        for frame in (reader.load(), said.load()):
            [row] = frame.selectExpr("string(local) l", "unix_seconds(instant) i").collect()
            assert tuple(row) == ("2024-05-17 12:00:00", 1_715_947_200)
            assert dict(frame.dtypes)["local"] == "timestamp_ntz"
        for types, column in (
            (("timestamp", "timestamp", "date"), "local"),
            (("timestamp_ntz", "timestamp_ntz", "date"), "instant"),
            (("timestamp_ntz", "timestamp", "timestamp"), "day"),
        ):
            shown = failure_of(reader.schema(KINDS.format(*types)).load().collect)
            assert f"column {column!r}: a time without a zone is a timestamp_ntz" in shown
    finally:
        known.conf.unset("spark.sql.session.timeZone")


def test_an_entry_that_publishes_nothing_is_named_in_the_driver(
    known: SparkSession, url: str, failure_of: Failure
) -> None:
    reader = known.read.format("callboard").option("url", url)
    assert "the entry 'sums' publishes no rows" in failure_of(reader.option("entry", "sums").load)


# --- streams --------------------------------------------------------------------------------------


@pytest.fixture
def query(known: SparkSession, url: str, tmp_path: Path) -> Query:
    return Query(known, tmp_path)


def test_a_stream_goes_on_and_rows_are_released_with_the_next_batch(query: Query, url: str) -> None:
    publish(url, 0, 100)
    query.run(url, partitions="2")
    assert query.batches == [(0, [*range(100)])]
    with published(url) as rows:
        assert rows.earliest() == 0
    publish(url, 100, 150)
    query.run(url)
    assert query.batches[1:] == [(1, [*range(100, 150)])]
    with published(url) as rows:
        assert (rows.earliest(), rows.latest()) == (100, 150)


def test_a_batch_that_is_replayed_has_the_same_rows(query: Query, url: str) -> None:
    publish(url, 0, 100)
    query.run(url)
    publish(url, 100, 150)
    query.run(url, partitions="4")
    forget_the_last_commit(query.checkpoint)
    publish(url, 150, 160)
    query.run(url, partitions="3")
    query.run(url)  # before PySpark 4.2 a run ends with the batch that it replays
    assert query.batches[1:] == [
        (1, [*range(100, 150)]),
        (1, [*range(100, 150)]),
        (2, [*range(150, 160)]),
    ]


def test_a_replayed_batch_that_was_released_by_another_is_an_error(
    query: Query, url: str, failure_of: Failure
) -> None:
    publish(url, 0, 100)
    query.run(url, release="false")
    publish(url, 100, 150)
    query.run(url, release="False")
    with published(url) as rows:
        assert rows.earliest() == 0
        rows.release(120)
    forget_the_last_commit(query.checkpoint)
    shown = failure_of(lambda: query.run(url))
    assert "row 100 of 'echo' was released, as were all before row 120" in shown


# --- options --------------------------------------------------------------------------------------

RIGHT = {"url": "unix:/nowhere", "entry": "echo"}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (
            {"partitions": "0"},
            "the option 'partitions' must be a whole number from 1 to 10000, got 0",
        ),
        ({"partitions": "all"}, "the option 'partitions' must be a whole number .* got 'all'"),
        ({"release": "maybe"}, "the option 'release' must be one of true, false, got 'maybe'"),
        ({"job": "j"}, "the option 'job' is not known here"),
        ({"secret": "x" * 32}, "a secret is not an option.*'secretfile'"),
    ],
)
def test_an_option_that_is_wrong_is_named_with_its_value(said: dict[str, str], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        CallboardSource(RIGHT | said).streamReader(StructType())


def test_only_a_stream_releases() -> None:
    with pytest.raises(ConfigError, match="the option 'release' is not known here"):
        CallboardSource(RIGHT | {"release": "true"}).reader(StructType())


def test_a_checkpoint_of_more_rows_than_there_are_is_an_error() -> None:
    reader = CallboardSource(RIGHT).streamReader(StructType())
    with pytest.raises(NotPublished, match=r"has published 10 rows, .* has read 100"):
        reader.partitions({"row": 100}, {"row": 10})


@pytest.mark.parametrize(
    ("start", "end", "parts", "sizes"),
    [(0, 0, 4, []), (5, 7, 4, [1, 1]), (0, 10, 3, [3, 3, 4]), (7, 8, 1, [1])],
)
def test_a_range_is_divided_evenly(start: int, end: int, parts: int, sizes: list[int]) -> None:
    ranges = divided(start, end, parts)
    assert [each.end - each.start for each in ranges] == sizes
    numbers = [row for each in ranges for row in range(each.start, each.end)]
    assert numbers == [*range(start, end)]
