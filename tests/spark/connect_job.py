"""Feed a Spark Connect session's partitions to actors and print the results as JSON."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from callboard import Actor, ActorRef, ActorSystem
from callboard.spark import PartitionContext, PartitionEnd, foreach_partition, map_in_arrow, session


class Double(Actor[Any]):
    """Answers each batch twice."""

    def receive(self, message: Any) -> Any:
        return [message, message]


class Sum(Actor[Any]):
    """Writes the sum of its partition's rows into a file."""

    def __init__(self, folder: str, context: PartitionContext) -> None:
        self.file = Path(folder, str(context.partition_id))
        self.total = 0

    def receive(self, message: Any) -> None:
        if isinstance(message, PartitionEnd):
            self.file.write_text(str(self.total))
        else:
            self.total += sum(row.id for row in message)


class Refuse(Actor[Any]):
    """Fails for a cause."""

    def receive(self, message: Any) -> None:
        try:
            raise KeyError("cause")
        except KeyError as error:
            raise ValueError("refused") from error


def main(folder: str) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()

    def double(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Double)

    def add(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Sum, folder, context)

    def refuse(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Refuse, name="refuse")

    frame = spark.range(10_000, numPartitions=2)
    doubled = frame.mapInArrow(map_in_arrow(double, schema="id long"), "id long")
    found: dict[str, Any] = {"doubled": doubled.count()}
    frame.foreachPartition(foreach_partition(add, flush=True))
    found["sum"] = sum(int(file.read_text()) for file in Path(folder).iterdir())
    try:
        frame.foreachPartition(foreach_partition(refuse))
    except Exception as error:
        found["error"] = str(error)
    found["kind"] = type(spark).__module__
    found["left alone"] = session() is spark
    spark.stop()
    print(json.dumps(found))


if __name__ == "__main__":
    os.environ["PYSPARK_PYTHON"] = sys.executable
    main(sys.argv[1])
