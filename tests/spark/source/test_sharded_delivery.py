"""Rows from executors to several servers, each counted once on the shard of its key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from callboard.core.errors import ConfigError
from callboard.remote import ShardAttempt, ShardedConnection
from callboard.remote.errors import ConnectionLost, ConnectionRejected, NotUploaded
from callboard.spark import deliver
from shards import Shards

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

ROWS = 4000
KEYS: dict[int, object] = {number: f"key {number % 97}" for number in range(ROWS)}


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shards]:
    shards = Shards(tmp_path_factory.mktemp("shards"))
    yield shards
    shards.stop()


def rows(spark: SparkSession, partitions: int = 4) -> DataFrame:
    return spark.range(ROWS, numPartitions=partitions).selectExpr(
        "id", "concat('key ', id % 97) as k"
    )


def dying(folder: str) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Kill the Python worker of a partition's first attempt, in the middle of its rows."""

    def pass_on(batches: Iterable[Any]) -> Iterator[Any]:
        import os
        import signal

        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        mark = Path(folder, str(context.partitionId()))
        for batch in batches:
            yield batch
            if context.partitionId() % 2 and not mark.exists():
                mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)

    return pass_on


class DriverEnded(Exception):
    """Stands for the end of the driver's process."""


def test_rows_of_executors_count_once_on_the_shard(cluster: SparkSession, shards: Shards) -> None:
    frame = rows(cluster)
    assert deliver(frame, shards.urls, "seen", by="k", job="plain")
    assert shards.counts(0) == shards.expected(KEYS)
    assert not deliver(frame, shards.urls, "seen", by="k", job="plain")
    assert shards.counts(0) == shards.expected(KEYS)


def test_python_workers_that_are_killed_change_nothing(
    cluster: SparkSession, shards: Shards, tmp_path: Path
) -> None:
    frame = rows(cluster).mapInArrow(dying(str(tmp_path)), "id long, k string")
    assert deliver(frame, shards.urls, "seen", by="k", job="workers", batch=1)
    assert len(list(tmp_path.iterdir())) == 2
    assert shards.counts(1) == shards.expected(KEYS)


@pytest.mark.parametrize(("batch", "done"), [(2, []), (3, [0]), (4, [1])])
def test_a_driver_that_ends_between_commits_is_repeated(
    cluster: SparkSession,
    shards: Shards,
    monkeypatch: pytest.MonkeyPatch,
    batch: int,
    done: list[int],
) -> None:
    commit = ShardedConnection.commit

    def commit_some(
        self: ShardedConnection,
        job: str,
        batch: int,
        winners: Iterable[ShardAttempt],
        timeout: float | None = None,
        *,
        shards: Collection[int] | None = None,
    ) -> None:
        chosen = [winner for winner in winners if winner.shard in done]
        commit(self, job, batch, chosen, timeout, shards=done)
        raise DriverEnded

    def send(partitions: int) -> bool:
        frame = rows(cluster, partitions)
        return deliver(frame, shards.urls, "seen", by="k", job="driver", batch=batch)

    with monkeypatch.context() as patched:
        patched.setattr(ShardedConnection, "commit", commit_some)
        with pytest.raises(DriverEnded):
            send(4)
    some = shards.counts(batch)
    expected = shards.expected(KEYS)
    assert some == [expected[at] if at in done else {} for at in range(2)]
    assert send(3)  # in other partitions, and so in another order
    assert shards.counts(batch) == expected
    assert not send(4)


@pytest.mark.parametrize(("batch", "killed"), [(5, 0), (6, 1)])
def test_a_server_that_is_killed_before_the_commits_gets_its_rows_anew(
    cluster: SparkSession, shards: Shards, monkeypatch: pytest.MonkeyPatch, batch: int, killed: int
) -> None:
    commit = ShardedConnection.commit

    def kill_first(self: ShardedConnection, *arguments: Any, **options: Any) -> None:
        shards.restart(killed)
        commit(self, *arguments, **options)

    def send() -> bool:
        return deliver(rows(cluster), shards.urls, "seen", by="k", job="server", batch=batch)

    with monkeypatch.context() as patched:
        patched.setattr(ShardedConnection, "commit", kill_first)
        with pytest.raises((NotUploaded, ConnectionLost)):
            send()
    assert send()
    assert shards.counts(batch) == shards.expected(KEYS)


def test_servers_in_the_wrong_order_are_refused(cluster: SparkSession, shards: Shards) -> None:
    with pytest.raises(
        ConnectionRejected, match="expected shard 0/2, got a server that is shard 1/2"
    ):
        deliver(rows(cluster), shards.urls[::-1], "seen", by="k", job="order")


def test_a_key_is_wanted_with_several_servers_only(cluster: SparkSession, shards: Shards) -> None:
    with pytest.raises(ConfigError, match="several servers need by="):
        deliver(rows(cluster), shards.urls, "seen", job="none")
    with pytest.raises(ConfigError, match="by= is for a list of servers"):
        deliver(rows(cluster), shards.urls[0], "seen", job="none", by="k")
