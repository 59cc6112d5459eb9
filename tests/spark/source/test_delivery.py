"""Rows from Spark that count once, though a task fails and a batch is replayed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from callboard.core.errors import ConfigError
from callboard.spark import deliver
from callboard.spark.source.data_source import CallboardSource
from sums import failing, health, sums

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine


def test_a_retried_task_changes_nothing(retrying: SparkSession, url: str, tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    frame = retrying.range(30_000, numPartitions=3)
    frame = frame.mapInArrow(failing(tmp_path / "marks", 1), "id long")
    assert deliver(frame, url, "sums", job="job")
    assert len(list((tmp_path / "marks").iterdir())) == 1
    assert sums(url) == [30_000, sum(range(30_000)), True]
    assert not deliver(frame, url, "sums", job="job")
    assert deliver(retrying.range(10), url, "sums", job="job", batch=1)
    assert sums(url)[:2] == [30_010, sum(range(30_000)) + 45]


def test_a_job_that_fails_leaves_nothing_and_may_be_tried_again(
    retrying: SparkSession, url: str, tmp_path: Path, failure_of: Callable[[Callable[[], Any]], str]
) -> None:
    (tmp_path / "marks").mkdir()
    frame = retrying.range(30_000, numPartitions=1)
    broken = frame.mapInArrow(failing(tmp_path / "marks", 3, partition=0), "id long")
    shown = failure_of(lambda: deliver(broken, url, "sums", job="job", batch=7))
    assert "this attempt fails" in shown
    found = health(url)
    assert (found["committed"], found["staged_memory"]) == (0, 0)
    assert deliver(frame, url, "sums", job="job", batch=7)
    assert sums(url) == [30_000, sum(range(30_000)), True]


def test_empty_partitions_upload_nothing(retrying: SparkSession, url: str) -> None:
    assert deliver(retrying.range(3, numPartitions=8), url, "sums", job="job")
    assert deliver(retrying.range(0), url, "sums", job="job", batch=1)
    assert sums(url) == [3, 3, True]
    assert health(url)["committed"] == 2


def test_a_frame_without_columns_is_refused(retrying: SparkSession, url: str) -> None:
    frame = retrying.range(5).select()
    assert frame.count() == 5
    with pytest.raises(ConfigError, match="the frame has no columns"):
        deliver(frame, url, "sums", job="job")
    assert health(url)["committed"] == 0
    place = {"url": url, "entry": "sums"}
    for writer in (
        CallboardSource({**place, "job": "job"}).writer,
        CallboardSource(place).streamWriter,
    ):
        with pytest.raises(ConfigError, match="the frame has no columns"):
            writer(StructType([]), False)


def test_a_refusal_is_readable_in_the_driver(
    retrying: SparkSession, url: str, failure_of: Callable[[Callable[[], Any]], str]
) -> None:
    shown = failure_of(lambda: deliver(retrying.range(3), url, "nobody", job="job"))
    assert "the server has no entry point 'nobody'; it has 'sums'" in shown


def test_a_replayed_batch_counts_once(retrying: SparkSession, url: str, tmp_path: Path) -> None:
    source, checkpoint = tmp_path / "source", tmp_path / "checkpoint"
    returned: list[tuple[int, bool]] = []

    def batch(frame: DataFrame, epoch: int) -> None:
        returned.append((epoch, deliver(frame, url, "sums", job="query", batch=epoch)))

    def run() -> None:
        stream = retrying.readStream.schema("id long").option("maxFilesPerTrigger", 1)
        query = (
            stream.parquet(str(source))
            .writeStream.foreachBatch(batch)
            .option("checkpointLocation", str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(120)

    for part in range(2):
        retrying.range(part * 100, (part + 1) * 100, numPartitions=1).write.mode("append").parquet(
            str(source)
        )
    run()
    assert returned == [(0, True), (1, True)]
    for file in (checkpoint / "commits").glob("*1*"):
        file.unlink()  # as if the query had been killed before it noted its last batch
    run()
    assert returned[2:] == [(1, False)]
    assert sums(url)[:2] == [200, sum(range(200))]


def test_a_wrong_address_is_shown(retrying: SparkSession) -> None:
    with pytest.raises(ConfigError, match="url expects one or several addresses, got 5"):
        deliver(retrying.range(1), 5, "sums", job="job")  # type: ignore[arg-type]
