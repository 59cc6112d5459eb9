"""Helpers for tests of Spark's jobs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

Failure = Callable[[Callable[[], object]], str]  # the fixture `failure_of`


def forget_the_last_commit(checkpoint: Path) -> None:
    """Be as if the query had been killed before it noted its last batch."""
    commits = checkpoint / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    (commits / str(last)).unlink()
    (commits / f".{last}.crc").unlink(missing_ok=True)


class Query:
    """A query of published rows, started again and again, and the rows of its batches."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark = spark
        self.checkpoint = folder / "checkpoint"
        self.batches: list[tuple[int, list[int]]] = []

    def run(self, *urls: str, **options: str) -> None:
        """Read what there is, and end."""
        stream = self.spark.readStream.format("callboard").options(url=",".join(urls), entry="echo")

        def take(batch: DataFrame, number: int) -> None:
            rows = [row.id for row in batch.collect()]
            self.batches.append((number, rows if len(urls) == 1 else sorted(rows)))

        query = (
            stream.options(**options)
            .load()
            .writeStream.foreachBatch(take)
            .option("checkpointLocation", str(self.checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(120)
