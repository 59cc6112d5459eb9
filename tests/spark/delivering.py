"""The driver's program of the soak: delivers one batch after the other, and reports its progress.

`delivering.py MASTER FIRST EVENTS SHARDS...` begins with batch FIRST, and goes on until it is
killed, or its input ends. EVENTS is the folder of Spark's event log. A batch whose delivery fails
is delivered again, as a user would.
"""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from callboard.remote import ShardedConnection
from callboard.remote.errors import RemoteError
from callboard.spark import deliver, session

PARTITIONS, ROWS = 4, 2000
CONF: dict[str, Any] = {
    "spark.executorEnv.PYTHONPATH": str(Path(__file__).parent),
    "spark.log.level": "OFF",
    "spark.cores.max": 2,
    "spark.executor.cores": 1,
    "spark.executor.memory": "512m",
    "spark.task.maxFailures": 8,
    "spark.deploy.maxExecutorRetries": -1,
    "spark.eventLog.enabled": "true",
    "spark.eventLog.compress": "false",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": 0.5,
    "spark.speculation.multiplier": 1.1,
    "spark.speculation.minTaskRuntime": "50ms",
}


def key_of(batch: int, number: int) -> str:
    """The key of a row."""
    return f"key {(number * 31 + batch) % 211}"


def rows(spark: SparkSession, batch: int) -> DataFrame:
    """The rows of a batch, the same each time; one partition's first attempt is slow."""
    key = f"concat('key ', (id * 31 + {batch}) % 211) as k"
    frame = spark.range(ROWS, numPartitions=PARTITIONS).selectExpr("id", key)
    slow = random.Random(batch).randrange(2 * PARTITIONS)

    def lag(batches: Iterable[Any]) -> Iterator[Any]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        for each in batches:
            if context.partitionId() == slow and context.attemptNumber() == 0:
                threading.Event().wait(0.7)  # a slow machine: speculation is to begin
            yield each

    return frame.mapInArrow(lag, "id long, k string")


def say(*words: object) -> None:
    """Write a line in one piece, unbuffered or not: who is killed has said it or has not."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def main(master: str, first: int, events: str, urls: list[str]) -> None:
    """Deliver until the input ends."""
    ended = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=listen, daemon=True).start()
    commit = ShardedConnection.commit

    def telling(
        connection: ShardedConnection, job: str, batch: int, *rest: Any, **more: Any
    ) -> None:
        say("staged", batch)
        commit(connection, job, batch, *rest, **more)

    ShardedConnection.commit = telling  # type: ignore[assignment,method-assign]
    spark = session(master, "soak", **CONF, **{"spark.eventLog.dir": Path(events).as_uri()})
    batch = first
    while not ended.is_set():
        say("begin", batch)
        try:
            deliver(rows(spark, batch), urls, "seen", by="k", job="soak", batch=batch)
        except (RemoteError, PySparkException, Py4JError) as error:
            say("failed", batch, type(error).__name__)
            continue
        say("done", batch)
        batch += 1
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3], sys.argv[4:])
