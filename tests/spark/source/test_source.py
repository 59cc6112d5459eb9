"""`format("callboard")`: rows that are appended count once, though tasks and commits fail."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from callboard.core.errors import ConfigError
from callboard.remote.errors import UploadRefused
from callboard.remote.protocol.kinds import MessageKind
from callboard.remote.server.peer import Peer
from callboard.remote.storage.store import StagingStore
from callboard.spark.source.data_source import CallboardSource
from jobs import Failure, forget_the_last_commit
from sums import failing, health, sums

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine


def append(frame: DataFrame, url: str, **options: str) -> None:
    writer = frame.write.format("callboard").mode("append").option("URL", url)
    writer.option("Entry", "sums").options(**options).save()


# --- batches --------------------------------------------------------------------------------------


def test_a_retried_task_changes_nothing(known: SparkSession, url: str, tmp_path: Path) -> None:
    (tmp_path / "marks").mkdir()
    frame = known.range(30_000, numPartitions=3)
    append(frame.mapInArrow(failing(tmp_path / "marks", 1), "id long"), url)
    assert len(list((tmp_path / "marks").iterdir())) == 1
    assert sums(url) == [30_000, sum(range(30_000)), True]
    append(known.range(10), url)
    assert sums(url)[:2] == [30_010, sum(range(30_000)) + 45]


def test_a_write_that_fails_leaves_nothing_and_may_be_tried_again(
    known: SparkSession, url: str, tmp_path: Path, failure_of: Failure
) -> None:
    (tmp_path / "marks").mkdir()
    frame = known.range(10_000, numPartitions=1)  # no other task that is still at work
    frame = frame.mapInArrow(failing(tmp_path / "marks", 3, partition=0), "id long")
    shown = failure_of(lambda: append(frame, url, job="load", batch="7"))
    assert "this attempt fails" in shown
    found = health(url)
    assert (found["committed"], found["staged_memory"]) == (0, 0)
    append(frame, url, job="load", batch="7")
    assert sums(url) == [10_000, sum(range(10_000)), True]


def test_a_load_that_is_named_counts_once(known: SparkSession, url: str) -> None:
    for _ in range(2):
        append(known.range(5_000, numPartitions=2), url, job="load")
    append(known.range(5), url, job="load", batch="1")
    assert sums(url)[:2] == [5_005, sum(range(5_000)) + 10]


def test_partitions_and_frames_without_rows_are_committed(known: SparkSession, url: str) -> None:
    append(known.range(3, numPartitions=8), url)
    append(known.range(0), url)
    assert sums(url) == [3, 3, True]
    assert health(url)["committed"] == 2


@contextmanager
def failing_commits(*, is_done: bool) -> Iterator[None]:
    """Have commits fail: before they are done, or only for those who wait for the answer."""
    commit, answer = StagingStore.commit, Peer.answer

    def refuse(self: StagingStore, *what: Any) -> None:
        raise UploadRefused("this commit fails")

    def answer_wrongly(self: Peer, request: Any, value: Any) -> None:
        if request.kind is MessageKind.COMMIT:
            self.fail(request, UploadRefused("this commit fails"))
        else:
            answer(self, request, value)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StagingStore, "commit", commit if is_done else refuse)
        patched.setattr(Peer, "answer", answer_wrongly if is_done else answer)
        yield


@pytest.mark.parametrize("is_done", [False, True])
def test_a_commit_that_raises_may_be_replayed(
    known: SparkSession, url: str, failure_of: Failure, is_done: bool
) -> None:
    frame = known.range(1_000, numPartitions=2)
    with failing_commits(is_done=is_done):
        assert "this commit fails" in failure_of(lambda: append(frame, url, job="load"))
    assert health(url)["committed"] == is_done
    assert health(url)["staged_memory"] == 0
    append(frame, url, job="load")
    assert sums(url)[:2] == [1_000, sum(range(1_000))]


def test_a_refusal_is_readable_in_the_driver(
    known: SparkSession, url: str, failure_of: Failure
) -> None:
    frame = known.range(3)
    for what, said in (
        (frame.write.mode("append").option("entry", "nobody"), "no entry point 'nobody'"),
        (frame.write.mode("overwrite").option("entry", "sums"), "cannot be undone"),
        (frame.write.mode("append").option("entry", "sums").option("rows", 1), "option 'rows'"),
    ):
        assert said in failure_of(what.format("callboard").option("url", url).save)


# --- streams --------------------------------------------------------------------------------------


class Stream:
    """A query that reads files and appends to `sums`, started again and again."""

    def __init__(self, spark: SparkSession, url: str, folder: Path) -> None:
        self.spark = spark
        self.url = url
        self.source = folder / "source"
        self.checkpoint = folder / "checkpoint"
        self.files = 0

    def feed(self, rows: int) -> None:
        """Add a file, of rows that no other has."""
        first = self.files * 10_000
        self.files += 1
        self.spark.range(first, first + rows, numPartitions=1).write.mode("append").parquet(
            str(self.source)
        )

    def start(self, change: Callable[[DataFrame], DataFrame] = lambda frame: frame) -> Any:
        stream = self.spark.readStream.schema("id long").option("maxFilesPerTrigger", 1)
        return (
            change(stream.parquet(str(self.source)))
            .writeStream.format("callboard")
            .option("url", self.url)
            .option("entry", "sums")
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )

    def run(self) -> None:
        assert self.start().awaitTermination(120)


@pytest.fixture
def stream(known: SparkSession, url: str, tmp_path: Path) -> Stream:
    return Stream(known, url, tmp_path)


def test_a_batch_that_a_query_replays_counts_once(stream: Stream, url: str) -> None:
    stream.feed(100)
    stream.feed(50)
    stream.run()
    assert sums(url)[0] == 150
    forget_the_last_commit(stream.checkpoint)
    stream.run()
    assert sums(url)[0] == 150
    assert health(url)["staged_late"] == 1
    stream.feed(7)
    stream.run()
    assert sums(url)[0] == 157


@pytest.mark.parametrize("is_done", [False, True])
def test_a_batch_whose_commit_raises_is_replayed(
    stream: Stream, url: str, failure_of: Failure, is_done: bool
) -> None:
    stream.feed(100)
    with failing_commits(is_done=is_done):
        assert "this commit fails" in failure_of(stream.run)
    assert health(url)["committed"] == is_done
    stream.run()
    assert sums(url)[0] == 100


def test_a_batch_without_rows_is_committed(stream: Stream, url: str) -> None:
    stream.feed(100)
    query = stream.start(lambda frame: frame.where("id < 0"))
    assert query.awaitTermination(120)
    assert health(url)["committed"] == 1
    assert sums(url)[0] == 0


def test_a_stopped_query_replays_its_batch(stream: Stream, url: str, tmp_path: Path) -> None:
    reached, pipe = tmp_path / "reached", tmp_path / "pipe"
    os.mkfifo(reached)
    os.mkfifo(pipe)

    def wait(batches: Iterable[Any]) -> Iterator[Any]:
        for batch in batches:
            yield batch
            reached.write_text("here")
            pipe.read_text()  # which nobody writes to: Spark ends the task

    stream.feed(100)
    query = stream.start(lambda frame: frame.mapInArrow(wait, "id long"))
    assert reached.read_text() == "here"
    query.stop()
    assert health(url)["committed"] == 0
    stream.run()
    assert sums(url)[0] == 100
    assert health(url)["staged_memory"] == 0


# --- options --------------------------------------------------------------------------------------

RIGHT = {"url": "unix:/nowhere", "entry": "sums"}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"url": ""}, "the option 'url' is missing"),
        ({"entry": ""}, "the option 'entry' is missing"),
        ({"url": "here"}, "the option 'url': expected an address unix:PATH .* got 'here'"),
        ({"secret": "x" * 32}, "a secret is not an option.*'secretfile'"),
        ({"timeout": "soon"}, "the option 'timeout' must be a number of seconds .* got 'soon'"),
        ({"timeout": "-1"}, r"the option 'timeout' must be a number of seconds .* got -1\.0"),
        ({"batch": "1"}, "the option 'batch', '1', needs a 'job'"),
        ({"job": "j", "batch": "one"}, "the option 'batch' must be a whole number .* got 'one'"),
        ({"job": ""}, "the option 'job': a job's name must have 1 to 1000 bytes in UTF-8, got 0"),
        ({"path": "/x"}, "the option 'path' is not known here; the options are batch, by, "),
    ],
)
def test_an_option_that_is_wrong_is_named_with_its_value(said: dict[str, str], error: str) -> None:
    with pytest.raises(ConfigError, match=error):
        CallboardSource(RIGHT | said).writer(StructType(), overwrite=False)


@pytest.mark.parametrize("name", ["secret", "auth_secret", "secrt", "password"])
def test_a_secret_is_not_shown_in_the_refusal(name: str) -> None:
    with pytest.raises(ConfigError, match=name[:3]) as raised:
        CallboardSource(RIGHT | {name: "hunter2"}).writer(StructType(), overwrite=False)
    assert "hunter2" not in str(raised.value)


@pytest.mark.parametrize("name", ["job", "batch"])
def test_a_streams_batches_have_their_names_from_spark(name: str) -> None:
    with pytest.raises(ConfigError, match=f"the option '{name}' is not known here"):
        CallboardSource(RIGHT | {name: "1"}).streamWriter(StructType(), overwrite=False)


def test_only_what_is_appended_is_taken() -> None:
    source = CallboardSource(dict(RIGHT))
    with pytest.raises(ConfigError, match=r"mode\('overwrite'\): .* use mode\('append'\)"):
        source.writer(StructType(), overwrite=True)
    with pytest.raises(ConfigError, match=r"outputMode\('complete'\): .* cannot be undone"):
        source.streamWriter(StructType(), overwrite=True)
