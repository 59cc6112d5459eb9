"""Rows that Spark's executors deliver to shards, until the actors have them, in other processes.

A row is an int and a text, which is its key. Each executor has one core; a first batch warms up.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from callboard import ActorSystem
from callboard.remote import PersistentActor, connect_sharded
from callboard.spark import deliver, session
from savina.result import Result

BENCH = Path(__file__).parents[1]
LIMIT = 300.0  # seconds


class Kept(PersistentActor):
    """Adds up what is committed."""

    def __init__(self) -> None:
        self.rows = self.total = 0

    def apply(self, row: Any) -> None:
        import pyarrow.compute as pc

        self.rows += row.num_rows
        self.total += pc.sum(row.column("id")).as_py()

    def answer(self, query: Any) -> Any:
        return [self.rows, self.total]

    def snapshot(self) -> Any:
        return [self.rows, self.total]

    def restore(self, state: Any) -> None:
        self.rows, self.total = state


def build(system: ActorSystem) -> dict[str, Any]:
    return {"kept": system.spawn(Kept)}


@contextmanager
def served(count: int) -> Iterator[list[str]]:
    with ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory())
        urls = [f"unix:{folder}/{index}" for index in range(count)]
        for index, url in enumerate(urls):
            command = [sys.executable, "-m", "callboard", "serve", "remote.sharding:build"]
            options = ["--bind", url, "--shard", f"{index}/{count}", "--log-level", "WARNING"]
            options += ["--state", f"{folder}/state-{index}"]
            server = subprocess.Popen([*command, *options], cwd=BENCH, stdout=subprocess.PIPE)
            ends.callback(server.communicate)
            ends.callback(server.terminate)
            assert server.stdout is not None
            server.stdout.readline()
        yield urls


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
    with served(servers) as urls:

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
