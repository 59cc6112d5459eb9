"""Rows that Spark's executors deliver to shards, until the actors have them, in other processes.

A row is an int and a text, which is its key. Each executor has one core; a first batch warms up.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from callboard import ActorSystem
from callboard.remote import connect_sharded
from callboard.spark import deliver, session
from remote.committing import Kept
from remote.processes import server
from savina.result import Result

LIMIT = 300.0  # seconds


class KeptBatches(Kept):
    """Adds up the batches that are committed."""

    def apply(self, row: Any) -> None:
        import pyarrow.compute as pc

        self.rows += row.num_rows
        self.total += pc.sum(row.column("id")).as_py()


def build(system: ActorSystem) -> dict[str, Any]:
    return {"kept": system.spawn(KeptBatches)}


@contextmanager
def running_shards(count: int) -> Iterator[list[str]]:
    with ExitStack() as ends:
        shards = [
            server("remote.sharding", "--shard", f"{index}/{count}", state=True)
            for index in range(count)
        ]
        yield [ends.enter_context(shard)[0] for shard in shards]


def answers(urls: list[str]) -> list[int]:
    """Wait until all that is committed is applied, and return the sums of the shards."""
    with connect_sharded(urls, timeout=LIMIT) as connection:
        for shard in connection.shards:
            while shard.health().result(LIMIT)["unapplied"]:
                time.sleep(0.001)
        asked = connection.ref("kept", by="k").ask_all("report")
        return [sum(column) for column in zip(*(each.result(LIMIT) for each in asked), strict=True)]


def run(size: int, executors: int = 1, servers: int = 1, batches: int = 3) -> Result:
    """Deliver `size` rows in each of some batches, after one that warms up."""
    spark = session(f"local-cluster[{executors},1,1024]", "bench")
    frame = spark.range(size, numPartitions=8).selectExpr("id", "concat('key ', id % 9973) as k")
    with running_shards(servers) as urls:

        def send(batch: int) -> None:
            deliver(frame, urls, "kept", by="k", job="bench", batch=batch, timeout=LIMIT)
            answers(urls)

        send(0)
        begin = time.perf_counter()
        for batch in range(1, batches + 1):
            send(batch)
        seconds = time.perf_counter() - begin
        got = answers(urls)
    spark.stop()
    sent = batches + 1
    return Result(batches * size, seconds, got, [sent * size, sent * sum(range(size))])
