"""`format("callboard")` with several servers: each has the rows of its keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from callboard import ActorSystem
from callboard.core.errors import ConfigError
from callboard.remote import Server, connect_sharded, serve_entries, shard_of
from callboard.remote.errors import UploadRefused
from callboard.remote.storage.store import StagingStore
from callboard.spark.source.data_source import CallboardSource
from callboard.spark.source.source_options import BY, SourceOptions
from jobs import Failure, Query
from sums import Echo, Sums, sums

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

SHARDS = 2


@pytest.fixture
def urls(tmp_path: Path) -> Iterator[list[str]]:
    """The addresses of two servers, which are shards of one, with the entries `sums` and `echo`."""
    with ExitStack() as ends:
        found = []
        for index in range(SHARDS):
            system = ends.enter_context(ActorSystem(workers=1))
            entries = serve_entries({"sums": system.spawn(Sums), "echo": system.spawn(Echo)})
            server = Server(
                system,
                entries,
                f"unix:{tmp_path}/{index}",
                state=tmp_path / f"state-{index}",
                shard=f"{index}/{SHARDS}",
            )
            ends.callback(server.stop)
            found.append(str(server.address))
        yield found


def expected(numbers: Iterable[int]) -> list[list[int]]:
    """How many numbers each shard has, and their sum, if the key is the number."""
    of_shards: list[list[int]] = [[0, 0] for _ in range(SHARDS)]
    for number in numbers:
        found = of_shards[shard_of(number, SHARDS)]
        found[0] += 1
        found[1] += number
    return of_shards


def found(urls: list[str]) -> list[list[int]]:
    return [sums(url)[:2] for url in urls]


@contextmanager
def refusing(shard: int) -> Iterator[None]:
    """Let a shard refuse each commit, while the others do theirs."""
    commit = StagingStore.commit

    def commit_some(self: StagingStore, *what: Any) -> Any:
        if self._folder.parent.name == f"state-{shard}":
            raise UploadRefused("this commit fails")
        return commit(self, *what)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(StagingStore, "commit", commit_some)
        yield


# --- writes ---------------------------------------------------------------------------------------


def append(frame: DataFrame, urls: list[str], **options: str) -> None:
    writer = frame.write.format("callboard").mode("append").option("url", ", ".join(urls))
    writer.options(entry="sums", by="id", **options).save()


def test_rows_go_to_the_shards_of_their_keys_once(known: SparkSession, urls: list[str]) -> None:
    for partitions in (3, 2):
        append(known.range(10_000, numPartitions=partitions), urls, job="load")
        assert found(urls) == expected(range(10_000))
    append(known.range(10_000, 10_010, numPartitions=1), urls)
    assert found(urls) == expected(range(10_010))


@pytest.mark.parametrize("shard", range(SHARDS))
def test_a_load_that_failed_between_two_commits_is_made_good(
    known: SparkSession, urls: list[str], failure_of: Failure, shard: int
) -> None:
    frame = known.range(10_000, numPartitions=3)
    with refusing(shard):
        assert "this commit fails" in failure_of(lambda: append(frame, urls, job="load"))
    wanted = expected(range(10_000))
    assert found(urls) == [[0, 0] if at == shard else wanted[at] for at in range(SHARDS)]
    append(known.range(10_000, numPartitions=2), urls, job="load")
    assert found(urls) == wanted


def test_a_stream_that_failed_between_two_commits_replays_the_batch(
    known: SparkSession, urls: list[str], tmp_path: Path, failure_of: Failure
) -> None:
    def run() -> None:
        stream = known.readStream.schema("id long").parquet(str(tmp_path / "source"))
        query = (
            stream.writeStream.format("callboard")
            .options(url=",".join(urls), entry="sums", by="id")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)

    known.range(5_000, numPartitions=2).write.parquet(str(tmp_path / "source"))
    with refusing(0):
        assert "this commit fails" in failure_of(run)
    wanted = expected(range(5_000))
    assert found(urls) == [[0, 0], wanted[1]]
    run()
    assert found(urls) == wanted


def test_servers_in_the_wrong_order_are_refused(
    known: SparkSession, urls: list[str], failure_of: Failure
) -> None:
    shown = failure_of(lambda: append(known.range(3), urls[::-1]))
    assert "expected shard 0/2, got a server that is shard 1/2" in shown


# --- reads ----------------------------------------------------------------------------------------


def publish(urls: list[str], start: int, end: int) -> None:
    """Have each shard publish those of a range of numbers that it has."""
    with connect_sharded(urls) as connection:
        with connection.upload("echo", by=lambda row: row, job="echo", batch=start) as upload:
            upload.send_many(range(start, end))
        connection.commit("echo", start, upload.staged)
        for health in connection.health():
            health.result(60)
        for shard in connection.shards:
            while shard.health().result(60)["unapplied"]:
                pass


def first_rows(urls: list[str]) -> list[int]:
    with connect_sharded(urls) as connection:
        return [shard.published("echo").earliest() for shard in connection.shards]


def test_a_frame_has_the_rows_of_all_shards(known: SparkSession, urls: list[str]) -> None:
    reader = known.read.format("callboard").options(url=",".join(urls), entry="echo")
    assert reader.load().collect() == []
    publish(urls, 0, 1_000)
    frame = reader.option("partitions", 2).load()
    assert frame.rdd.getNumPartitions() == 2 * SHARDS
    assert sorted(row.id for row in frame.collect()) == [*range(1_000)]


def test_a_stream_reads_all_shards(known: SparkSession, urls: list[str], tmp_path: Path) -> None:
    query = Query(known, tmp_path)
    publish(urls, 0, 100)
    query.run(*urls)
    assert first_rows(urls) == [0, 0]
    publish(urls, 100, 150)
    query.run(*urls)
    assert query.batches == [(0, [*range(100)]), (1, [*range(100, 150)])]
    assert first_rows(urls) == [count for count, _ in expected(range(100))]


def test_a_checkpoint_of_other_servers_is_refused(
    known: SparkSession, urls: list[str], tmp_path: Path, failure_of: Failure
) -> None:
    query = Query(known, tmp_path)
    publish(urls, 0, 10)
    query.run(*urls)
    shown = failure_of(lambda: query.run(urls[0]))
    assert "the option 'url': expected row, got {'row of 0/2': " in shown
    assert len(query.batches) == 1


# --- options --------------------------------------------------------------------------------------

RIGHT = {"url": "unix:/first, unix:/second", "entry": "sums", "by": "id"}


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ({"by": None}, "the option 'by' is missing: 'url' names 2 servers"),
        ({"url": "unix:/first"}, "the option 'by', 'id', is for several servers: 'url' names"),
        ({"url": "unix:/first,,"}, "the option 'url' has an empty part: 'unix:/first,,'"),
        ({"by": "id,"}, "the option 'by' has an empty part: 'id,'"),
        (
            {"url": "unix:/first,there"},
            "the option 'url': expected an address unix:PATH .* got 'there'",
        ),
    ],
)
def test_a_wrong_option_is_named_with_its_value(said: dict[str, str | None], error: str) -> None:
    options = {name: value for name, value in (RIGHT | said).items() if value is not None}
    with pytest.raises(ConfigError, match=error):
        CallboardSource(options).writer(StructType(), overwrite=False)


@pytest.mark.parametrize(("by", "names"), [("id", "id"), ("id , kind", ("id", "kind"))])
def test_the_key_is_a_column_or_several(by: str, names: Any) -> None:
    assert SourceOptions(RIGHT | {"by": by}).remote_entry(BY).by == names


def test_reading_takes_no_key() -> None:
    with pytest.raises(ConfigError, match="the option 'by' is not known here"):
        CallboardSource(RIGHT).reader(StructType())
