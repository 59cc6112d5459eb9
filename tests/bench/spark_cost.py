"""The cost of feeding a partition to actors, compared with Spark's own functions in the run.

    python tests/bench/spark_cost.py [--rounds 5] [--rows 2000000] [--only PAIR ...] [--json FILE]

Six pairs, whose rounds alternate, with the order inside a pair reversed in every other round:

- `arrow`: `map_in_arrow` into a native entry point that answers the batch, against an identity
  `mapInArrow`; the counts and sums of what comes back are checked.
- `python`: the same into a Python entry point.
- `graph`: `spark_graph` of a stream that maps each batch to itself, against the same identity.
- `rows`: the same of a stream of rows as tuples, against a `mapInArrow` that makes tuples of each
  batch, and a batch of them.
- `frame`: `foreach_partition` on a frame's rows into an actor that counts, against a
  `DataFrame.foreachPartition` that only counts.
- `tuples`: the same on an RDD of tuples, whose rows cost Spark a tenth of a frame's.

The counts of the last two come back by an accumulator, and are checked.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from time import perf_counter
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from callboard import Actor, ActorRef, ActorSystem
from callboard.spark import (
    PartitionContext,
    PartitionEnd,
    foreach_partition,
    map_in_arrow,
    session,
    spark_graph,
)
from callboard.streams import entry
from natives import compile_actors

SCHEMA = "number long, name string, value double"
Job = Callable[[], None]


class Echo(Actor[Any]):
    """Answers each batch with itself."""

    def receive(self, message: pa.RecordBatch) -> pa.RecordBatch:
        return message


class Count(Actor[Any]):
    """Counts rows and, at the partition's end, adds them to an accumulator."""

    def __init__(self, total: Any) -> None:
        self.total = total
        self.rows = 0

    def receive(self, message: Any) -> None:
        if isinstance(message, PartitionEnd):
            self.total.add(self.rows)
        else:
            self.rows += len(message)


@dataclass
class Pair:
    """Two jobs that do the same, ours and Spark's, and how long each took."""

    name: str
    rows: int
    target: float
    ours: Job
    spark: Job
    ours_seconds: list[float] = field(default_factory=list)
    spark_seconds: list[float] = field(default_factory=list)

    def round(self, *, reverse: bool) -> None:
        both = [(self.ours, self.ours_seconds), (self.spark, self.spark_seconds)]
        for job, seconds in reversed(both) if reverse else both:
            begin = perf_counter()
            job()
            seconds.append(perf_counter() - begin)

    def result(self) -> dict[str, Any]:
        ours = statistics.median(self.ours_seconds)
        spark = statistics.median(self.spark_seconds)
        return {
            "name": self.name,
            "ours_rows_per_s": self.rows / ours,
            "spark_rows_per_s": self.rows / spark,
            "ratio": spark / ours,
            "target": self.target,
            "ours_seconds": self.ours_seconds,
            "spark_seconds": self.spark_seconds,
        }


def expect(what: str, found: object, wanted: object) -> None:
    if found != wanted:
        raise SystemExit(f"{what}: found {found}, expected {wanted}")


def arrow_job(frame: DataFrame, rows: int, function: Any) -> Job:
    sums = frame.mapInArrow(function, SCHEMA).agg(
        f.count("*"), f.sum("number"), f.sum(f.length("name")), f.sum("value")
    )
    # Names are row0 to row999, over and over.
    lengths = sum(len(f"row{number % 1000}") for number in range(1000)) * (rows // 1000)
    wanted = (rows, rows * (rows - 1) // 2, lengths, rows * (rows - 1) / 4)

    def run() -> None:
        expect("mapInArrow", tuple(sums.first() or ()), wanted)

    return run


def counting_job(
    spark: SparkSession, rows: int, each: Callable[[Any], object], function: Callable[[Any], Any]
) -> Job:
    def run() -> None:
        total = spark.sparkContext.accumulator(0)
        each(function(total))
        expect("foreachPartition", total.value, rows)

    return run


def only_count(total: Any) -> Callable[[Iterable[Any]], None]:
    def run(rows: Iterable[Any]) -> None:
        total.add(sum(1 for _ in rows))

    return run


def count_in_actor(total: Any) -> Callable[[Iterable[Any]], None]:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Count, total)

    return foreach_partition(build, flush=True)


def echo(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Echo)


def native(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(import_module("batches").PassOn)


def identity(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield from batches


def same(what: Any) -> Any:
    return what


def by_tuples(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = list(map(same, zip(*(column.to_pylist() for column in batch.columns), strict=True)))
        columns = [
            pa.array(values, field.type)
            for field, values in zip(batch.schema, zip(*rows, strict=True), strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def pairs(spark: SparkSession, rows: int) -> list[Pair]:
    frame = spark.range(rows, numPartitions=2).select(
        f.col("id").alias("number"),
        f.concat(f.lit("row"), (f.col("id") % 1000).cast("string")).alias("name"),
        (f.col("id") / 2).alias("value"),
    )
    tuples = spark.sparkContext.parallelize(
        [(number, f"row{number % 1000}", number / 2) for number in range(rows)], 2
    ).cache()
    expect("the RDD's rows", tuples.count(), rows)
    few = frame.limit(rows // 4).repartition(2).cache()  # a frame's rows take ten times longer
    expect("the frame's rows", few.count(), rows // 4)

    return [
        Pair(
            "arrow",
            rows,
            0.7,
            arrow_job(frame, rows, map_in_arrow(native)),
            arrow_job(frame, rows, identity),
        ),
        Pair(
            "python",
            rows,
            0.7,
            arrow_job(frame, rows, map_in_arrow(echo)),
            arrow_job(frame, rows, identity),
        ),
        Pair(
            "graph",
            rows,
            0.7,
            arrow_job(frame, rows, spark_graph(entry("rows").map_batches(same)).map_in_arrow),
            arrow_job(frame, rows, identity),
        ),
        Pair(
            "rows",
            rows,
            0.7,
            arrow_job(
                frame,
                rows,
                spark_graph(entry("rows").map(same), rows="tuple", schema=SCHEMA).map_in_arrow,
            ),
            arrow_job(frame, rows, by_tuples),
        ),
        Pair(
            "frame",
            rows // 4,
            0.8,
            counting_job(spark, rows // 4, few.foreachPartition, count_in_actor),
            counting_job(spark, rows // 4, few.foreachPartition, only_count),
        ),
        Pair(
            "tuples",
            rows,
            0.8,
            counting_job(spark, rows, tuples.foreachPartition, count_in_actor),
            counting_job(spark, rows, tuples.foreachPartition, only_count),
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=2_000_000, help="a multiple of 4,000")
    parser.add_argument("--only", nargs="+", metavar="PAIR", help="the names of some pairs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.rows < 4000 or options.rows % 4000:
        parser.error(f"--rows must be a multiple of 4,000, not {options.rows}")

    conf = {"spark.log.level": "ERROR"}
    if not options.only or "arrow" in options.only:
        conf["spark.executorEnv.PYTHONPATH"] = str(compile_actors("batches"))
    spark = session("local[2]", "spark_cost", **conf)
    measured = pairs(spark, options.rows)
    if options.only:
        measured = [pair for pair in measured if pair.name in options.only]
    for pair in measured:  # warm up: workers, the JVM's compiler
        pair.ours()
        pair.spark()
    for number in range(options.rounds):
        for pair in measured:
            pair.round(reverse=number % 2 == 1)
    spark.stop()

    results = [pair.result() for pair in measured]
    print(f"{'':8}{'actors':>10}{'Spark':>10}  million rows/s, medians of {options.rounds}")
    for result in results:
        ours, alone = (result[key] / 1e6 for key in ("ours_rows_per_s", "spark_rows_per_s"))
        met = "met" if result["ratio"] >= result["target"] else "missed"
        print(
            f"{result['name']:8}{ours:10.2f}{alone:10.2f}"
            f"  ratio {result['ratio']:.2f}, target {result['target']}: {met}"
        )
    if options.json:
        options.json.write_text(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
