"""Partition functions in `local-cluster`: separate executors, and lost tasks that are retried."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyspark
import pytest
from pyspark.sql import SparkSession

import graphs
from callboard import Actor, ActorRef, ActorSystem
from callboard.spark import (
    PartitionContext,
    PartitionEnd,
    foreach_partition,
    map_in_arrow,
    map_partitions,
)

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine


def check_retry(cluster: SparkSession, actor: type[graphs.FailHalfway], folder: Path) -> None:
    log = str(folder)

    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(actor, context, log, name="count")

    rdd = cluster.sparkContext.parallelize(range(graphs.ROWS), 2)
    function = map_partitions(build, flush=True, batch_size=50, in_flight=2)
    told = rdd.mapPartitions(function).collect()
    assert told == [(0, 1, graphs.ROWS // 2), (1, 0, graphs.ROWS // 2)], "results count once"
    effects = [int(row) for file in folder.iterdir() for row in file.read_text().split()]
    assert set(effects) == set(range(graphs.ROWS)), "every row had its effect"
    assert graphs.HALF <= len(effects) - graphs.ROWS < graphs.ROWS // 2, (
        "those of the lost attempt had it twice"
    )


def test_a_retried_task_starts_with_fresh_actors(cluster: SparkSession, tmp_path: Path) -> None:
    check_retry(cluster, graphs.FailHalfway, tmp_path)


def test_a_killed_worker_costs_and_doubles_no_row(cluster: SparkSession, tmp_path: Path) -> None:
    check_retry(cluster, graphs.DieHalfway, tmp_path)


def test_each_executor_has_workers_of_its_own(cluster: SparkSession) -> None:
    rdd = cluster.sparkContext.parallelize(range(80), 8)
    function = map_partitions(graphs.tally, flush=True)
    told = rdd.mapPartitions(function).collect() + rdd.mapPartitions(function).collect()
    systems = {(process, system) for _, _, process, _, system, _ in told}
    processes = {process for process, _ in systems}
    assert len(processes) == len(systems), "a process has one system"
    assert len(processes) >= 2, "only one executor had tasks"
    assert {rows for _, _, _, rows, _, _ in told} == {10}


def test_record_batches_come_back_from_executors(cluster: SparkSession) -> None:
    frame = cluster.range(25_000, numPartitions=2)
    back = frame.mapInArrow(map_in_arrow(graphs.echo, schema="id long"), "id long")
    assert [row.id for row in back.collect()] == list(range(25_000))


def test_rows_reach_actors_after_a_shuffle(cluster: SparkSession, tmp_path: Path) -> None:
    folder = str(tmp_path)

    class Write(Actor[Any]):
        def __init__(self, context: PartitionContext) -> None:
            self.file = Path(folder, f"{context.partition_id}-{context.task_attempt_id}")
            self.keys: set[int] = set()

        def receive(self, message: Any) -> None:
            if isinstance(message, PartitionEnd):
                self.file.write_text("\n".join(map(str, self.keys)))
            else:
                self.keys |= {row.key for row in message}

    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Write, context)

    frame = cluster.range(1000).selectExpr("id % 10 as key").repartition(2, "key")
    frame.foreachPartition(foreach_partition(build, flush=True))
    keys = [int(key) for file in tmp_path.iterdir() for key in file.read_text().split()]
    assert sorted(keys) == list(range(10)), "each key in one partition"


def test_the_installed_package_is_left_as_it_was(cluster: SparkSession) -> None:
    assert cluster.sparkContext.parallelize(range(4), 2).sum() == 6
    assert not Path(pyspark.__file__).with_name("work").exists(), "executors worked in it"
