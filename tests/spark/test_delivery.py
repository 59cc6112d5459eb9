"""Rows from Spark that count once, though a task fails and a batch is replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from callboard import ActorSystem
from callboard.remote import Persistent, connect
from callboard.remote.entries import entries_of
from callboard.remote.server import Server
from callboard.spark import deliver

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine


class Sums(Persistent):
    def __init__(self) -> None:
        self.rows = 0
        self.total = 0
        self.partitions: list[int] = []

    def apply(self, row: Any) -> None:
        self.rows += row.num_rows
        self.total += sum(row.column("id").to_pylist())
        self.partitions.append(self.key.partition)

    def answer(self, query: Any) -> Any:
        return [self.rows, self.total, sorted(self.partitions) == self.partitions]

    def snapshot(self) -> Any:
        return [self.rows, self.total, self.partitions]

    def restore(self, state: Any) -> None:
        self.rows, self.total, self.partitions = state


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with ActorSystem(workers=1, token=False) as system:
        entries = entries_of({"sums": system.spawn(Sums)})
        server = Server(system, entries, f"unix:{tmp_path}/s", state=tmp_path / "state")
        yield str(server.address)
        server.stop()


def sums(url: str) -> Any:
    with connect(url) as connection:
        while connection.health().result(20)["unapplied"]:
            pass
        return connection.ref("sums").ask("sums").result(20)


def health(url: str) -> dict[str, Any]:
    with connect(url) as connection:
        return connection.health().result(20)


def failing(marker: Path, times: int) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Fail in the middle of a partition, the first so many times."""

    def pass_on(batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            yield batch
            marks = list(marker.iterdir())
            if context.partitionId() == 1 and len(marks) < times:
                (marker / str(context.taskAttemptId())).touch()
                raise RuntimeError("this attempt fails")

    return pass_on


def test_a_task_that_fails_once_changes_nothing(
    retrying: SparkSession, url: str, tmp_path: Path
) -> None:
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
    frame = retrying.range(30_000, numPartitions=3)
    broken = frame.mapInArrow(failing(tmp_path / "marks", 3), "id long")
    shown = failure_of(lambda: deliver(broken, url, "sums", job="job", batch=7))
    assert "this attempt fails" in shown
    found = health(url)
    assert (found["committed"], found["staged_memory"]) == (0, 0)
    assert deliver(frame, url, "sums", job="job", batch=7)
    assert sums(url) == [30_000, sum(range(30_000)), True]


def test_empty_partitions_stage_nothing(retrying: SparkSession, url: str) -> None:
    assert deliver(retrying.range(3, numPartitions=8), url, "sums", job="job")
    assert deliver(retrying.range(0), url, "sums", job="job", batch=1)
    assert sums(url) == [3, 3, True]
    assert health(url)["committed"] == 2


def test_what_is_refused_is_readable_in_the_driver(
    retrying: SparkSession, url: str, failure_of: Callable[[Callable[[], Any]], str]
) -> None:
    shown = failure_of(lambda: deliver(retrying.range(3), url, "nobody", job="job"))
    assert "the server has no entry point 'nobody'; it has 'sums'" in shown


def test_a_batch_that_a_query_replays_counts_once(
    retrying: SparkSession, url: str, tmp_path: Path
) -> None:
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
