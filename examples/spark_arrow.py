"""Watch each sensor's readings for jumps: a stateful actor between Arrow batches.

Run it with `python examples/spark_arrow.py`. Each partition holds some sensors' readings in the
order of time. The entry point hands a batch on to the actor that knows the last readings, and
answers with the future of that actor's answer, so that it can take the next batch meanwhile.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import functions as f

from callboard import Actor, ActorRef, ActorSystem
from callboard.spark import PartitionContext, map_in_arrow, session

SCHEMA = "sensor long, second long, jump double"
LIMIT = 5.0


class Cleaner(Actor[Any]):
    """Drops readings without a value."""

    def __init__(self, watcher: ActorRef[Any]) -> None:
        self.watcher = watcher

    def receive(self, message: pa.RecordBatch) -> Any:
        return self.watcher.ask(message.filter(message["value"].is_valid()))


class Watcher(Actor[Any]):
    """Answers the readings that differ too much from the same sensor's last one."""

    def __init__(self) -> None:
        self.last: dict[int, float] = {}

    def receive(self, message: pa.RecordBatch) -> pa.RecordBatch:
        jumps: list[dict[str, Any]] = []
        for sensor, second, value in zip(*message.to_pydict().values(), strict=True):
            jump = value - self.last.get(sensor, value)
            if abs(jump) > LIMIT:
                jumps.append({"sensor": sensor, "second": second, "jump": jump})
            self.last[sensor] = value
        names = [("sensor", pa.int64()), ("second", pa.int64()), ("jump", pa.float64())]
        return pa.RecordBatch.from_pylist(jumps, pa.schema(names))


def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Cleaner, system.spawn(Watcher))


def main() -> None:
    spark = session("local[2]")
    value = f.when(f.col("second") % 100 != 7, f.floor(f.col("second") / 1000) * 10.0)
    readings = (
        spark.range(20_000)
        .select((f.col("id") % 4).alias("sensor"), f.floor(f.col("id") / 4).alias("second"))
        .withColumn("value", value)
        .repartition(2, "sensor")
        .sortWithinPartitions("second")
    )
    jumps = readings.mapInArrow(map_in_arrow(build, schema=SCHEMA), SCHEMA)
    for row in jumps.orderBy("sensor", "second").collect():
        print(f"sensor {row.sensor}, second {row.second}: {row.jump:+.1f}")
    spark.stop()


if __name__ == "__main__":
    main()
