"""Counters of tasks, and the moment when the driver sees them."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from callboard import Actor, ActorRef, ActorSystem, Supervision
from callboard.core.errors import ConfigError
from callboard.spark import (
    PartitionContext,
    TaskCounters,
    foreach_partition,
    map_in_arrow,
    map_partitions,
    spark_graph,
)
from callboard.spark.tasks.counters import EntryCounts
from callboard.streams import entry
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine


def evens(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    gone = system.spawn(Silent)
    gone.stop()
    assert gone.ended.result(30) is not None
    return system.spawn(Sieve, gone)


class Silent(Actor[Any]):
    def receive(self, message: Any) -> None:
        pass


class Sieve(Actor[Any]):
    """Answers the even numbers, and tells the odd ones to an actor that has stopped."""

    def __init__(self, gone: ActorRef[Any]) -> None:
        self.gone = gone

    def receive(self, rows: list[int]) -> list[int]:
        for row in rows:
            if row % 2:
                self.gone.tell(row)
        return [row for row in rows if row % 2 == 0]


class Stumbling(Actor[Any]):
    """Restarts at each seven that another actor tells it."""

    def receive(self, row: int) -> None:
        if row == 7:
            raise ValueError(row)


class Telling(Actor[Any]):
    def __init__(self, other: ActorRef[Any]) -> None:
        self.other = other

    def receive(self, rows: list[int]) -> None:
        for row in rows:
            self.other.tell(row)


def stumbling(system: ActorSystem, context: PartitionContext) -> dict[str, ActorRef[Any]]:
    mended = Supervision("restart", limit=None)
    return {"telling": system.spawn(Telling, system.spawn(Stumbling, supervision=mended))}


class Halved(Actor[Any]):
    def receive(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.slice(0, batch.num_rows // 2)


def halved(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Halved)


class FailingFirst(Actor[Any]):
    """Handles all rows, and fails at the end of a partition's first attempt."""

    def __init__(self, attempt: int) -> None:
        self.attempt = attempt

    def receive(self, message: Any) -> None:
        if not isinstance(message, list) and self.attempt == 0:
            raise ValueError("the first attempt fails")


def failing_first(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(FailingFirst, context.attempt_number)


def counts_of(counters: TaskCounters) -> dict[str, tuple[int, ...]]:
    return {
        name: (c.runs, c.rows_in, c.rows_out, c.dead_letters, c.restarts)
        for name, c in counters.counts.items()
    }


def test_rows_and_dead_letters_are_counted_by_build_function(spark: SparkSession) -> None:
    counters = TaskCounters(spark)
    rows = spark.sparkContext.parallelize(range(100), 4)
    assert rows.mapPartitions(map_partitions(evens, counters=counters)).count() == 50
    assert counts_of(counters) == {"evens": (4, 100, 50, 50, 0)}
    assert counters.total.busy > 0


def test_restarts_are_counted_by_the_name_of_the_entry(spark: SparkSession) -> None:
    counters = TaskCounters(spark.sparkContext)
    rows = spark.sparkContext.parallelize([7, 1, 7, 2, 7], 1)
    rows.foreachPartition(foreach_partition(stumbling, entry="telling", counters=counters))
    assert counts_of(counters) == {"telling": (1, 5, 0, 3, 3)}  # what failed is a dead letter


def test_the_rows_of_record_batches_are_counted(spark: SparkSession) -> None:
    counters = TaskCounters(spark)
    frame = spark.range(0, 1000, numPartitions=2)
    assert frame.mapInArrow(map_in_arrow(halved, counters=counters), "id long").count() == 500
    assert counts_of(counters) == {"halved": (2, 1000, 500, 0, 0)}


def test_a_transformation_counts_for_each_action(spark: SparkSession) -> None:
    counters = TaskCounters(spark)
    rows = spark.sparkContext.parallelize(range(10), 1)
    mapped = rows.mapPartitions(map_partitions(evens, counters=counters))
    assert [mapped.count(), mapped.count()] == [5, 5]
    assert counts_of(counters) == {"evens": (2, 20, 10, 10, 0)}


def test_a_graphs_rows_are_counted_and_the_ones_that_it_skips(spark: SparkSession) -> None:
    counters = TaskCounters(spark)
    numbers = entry("x").map(lambda row: 1 // (row % 3), errors="skip")
    graph = spark_graph(numbers, counters=counters)
    rows = spark.sparkContext.parallelize(range(30), 2)
    assert rows.mapPartitions(graph.map_partitions).count() == 20
    rows.foreachPartition(spark_graph(numbers, entry="x", counters=counters).foreach_partition)
    assert counts_of(counters)["graph"] == (2, 30, 20, 10, 0)
    assert counts_of(counters)["x"][:2] == (2, 30)


def test_the_driver_sees_ended_tasks_while_others_run(spark: SparkSession, tmp_path: Path) -> None:
    counters = TaskCounters(spark)
    gate = tmp_path / "gate"

    def waiting(rows: Iterable[int]) -> Iterable[int]:
        for row in rows:
            if row >= 10:
                until(gate.exists, "the gate", within=120)
            yield row

    inputs = spark.sparkContext.parallelize(range(20), 2).mapPartitions(waiting)
    function = foreach_partition(evens, counters=counters)
    job = threading.Thread(target=inputs.foreachPartition, args=(function,))
    job.start()
    try:
        until(lambda: counters.total.runs == 1, "one task has ended", within=120)
        out = io.StringIO()
        with counters.progress(20, file=out):
            pass
        assert " 50%  1 runs, 10 rows in, 0 rows out, 5 dead letters" in out.getvalue()
    finally:
        gate.touch()
        job.join()
    assert counts_of(counters) == {"evens": (2, 20, 0, 10, 0)}


def test_a_failed_attempt_counts_nothing(retrying: SparkSession) -> None:
    counters = TaskCounters(retrying)
    rows = retrying.sparkContext.parallelize(range(40), 2)
    rows.foreachPartition(foreach_partition(failing_first, flush=True, counters=counters))
    assert counts_of(counters) == {"failing_first": (2, 40, 0, 0, 0)}


def test_counters_need_a_spark_context() -> None:
    class Connect:
        @property
        def sparkContext(self) -> Any:  # noqa: N802
            raise RuntimeError("not supported")

    for wrong in (Connect(), SimpleNamespace(), None, 1):
        with pytest.raises(ConfigError, match="Spark Connect's have none"):
            TaskCounters(wrong)


def test_counters_of_another_kind_are_refused() -> None:
    with pytest.raises(ConfigError, match="counters expects TaskCounters or None, got 1"):
        foreach_partition(evens, counters=1)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="counters expects TaskCounters or None, got 'x'"):
        spark_graph(entry("x"), counters="x")  # type: ignore[arg-type]


def test_counts_add_up() -> None:
    one = EntryCounts(1, 2, 3, 4, 5, 0.5)
    assert one + one == EntryCounts(2, 4, 6, 8, 10, 1.0)
    assert str(one) == "1 runs, 2 rows in, 3 rows out, 4 dead letters, 5 restarts, 0.5 s"
