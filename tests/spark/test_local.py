"""Partition functions in `local[2]`: values, readable failures, reused workers."""

from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.functions import col, expr

import graphs
from callboard import Actor, ActorRef, ActorSystem
from callboard.spark import (
    PartitionContext,
    PartitionEnd,
    foreach_partition,
    map_in_arrow,
    map_partitions,
    session,
)
from jobs import Failure

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

# As it is when the tests are collected, before there is a session.
ENVIRONMENT = {name: os.environ.get(name) for name in ("PYSPARK_PYTHON", "JAVA_HOME", "SPARK_HOME")}


def test_workers_are_reached_as_spark_does_unless_told(spark: SparkSession) -> None:
    assert spark.conf.get("spark.python.unix.domain.socket.enabled", "unset") in ("false", "unset")


def test_rows_of_an_rdd_come_back_in_order(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize(range(10_000), 3)
    assert rdd.mapPartitions(map_partitions(graphs.echo, batch_size=64)).collect() == list(
        range(10_000)
    )


def test_record_batches_of_a_frame_come_back_in_order(spark: SparkSession) -> None:
    frame = spark.range(25_000, numPartitions=2)
    back = frame.mapInArrow(map_in_arrow(graphs.echo, schema="id long"), "id long")
    assert [row.id for row in back.collect()] == list(range(25_000))


def test_every_row_of_a_frame_reaches_an_actor(spark: SparkSession, tmp_path: Path) -> None:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Write, str(tmp_path), context, name="write")

    class Write(Actor[Any]):
        def __init__(self, folder: str, context: PartitionContext) -> None:
            self.file = Path(folder, str(context.task_attempt_id))
            self.total = 0

        def receive(self, message: Any) -> None:
            if isinstance(message, PartitionEnd):
                self.file.write_text(str(self.total))
            else:
                self.total += sum(row.id for row in message)

    frame = spark.range(10_000, numPartitions=4)
    frame.foreachPartition(foreach_partition(build, flush=True, batch_size=500))
    totals = [int(file.read_text()) for file in tmp_path.iterdir()]
    assert len(totals) == 4
    assert sum(totals) == sum(range(10_000))


def test_the_context_knows_partition_attempt_and_stage(spark: SparkSession) -> None:
    class Know(Actor[Any]):
        def __init__(self, context: PartitionContext) -> None:
            self.context = context

        def receive(self, message: Any) -> Any:
            return [self.context] if isinstance(message, PartitionEnd) else None

    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Know, context)

    rdd = spark.sparkContext.parallelize(range(8), 4)
    contexts = rdd.mapPartitions(map_partitions(build, flush=True)).collect()
    assert [context.partition_id for context in contexts] == [0, 1, 2, 3]
    assert len({context.task_attempt_id for context in contexts}) == 4
    assert len({context.stage_id for context in contexts}) == 1
    assert {(context.attempt_number, context.cpus) for context in contexts} == {(0, 1)}


def test_a_reused_worker_keeps_its_system_and_nothing_else(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize(range(800), 8)
    count = map_partitions(graphs.tally, flush=True)
    told = rdd.mapPartitions(count).collect() + rdd.mapPartitions(count).collect()
    assert [rows for _, _, _, rows, _, _ in told] == [100] * 16
    by_process = defaultdict(set)
    for _, _, process, _, system, threads in told:
        by_process[process].add((system, threads))
    assert len(by_process) < 16, "not one worker ran two tasks"
    for process, seen in by_process.items():
        assert len(seen) == 1, f"process {process} had systems and threads {seen}"


def test_a_graph_may_be_kept_from_task_to_task(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize(range(800), 8)
    count = map_partitions(graphs.kept_tally, flush=True, lifetime="process")
    told = rdd.mapPartitions(count).collect()
    last: dict[int, tuple[int, tuple[int, ...]]] = {}
    for process, rows, partitions in told:
        last[process] = max(last.get(process, (0, ())), (rows, partitions))
    assert sum(rows for rows, _ in last.values()) == 800
    assert sorted(sum((partitions for _, partitions in last.values()), ())) == list(range(8))


def test_a_failed_actor_is_readable_on_the_rdd(spark: SparkSession, failure_of: Failure) -> None:
    rdd = spark.sparkContext.parallelize(range(10), 1)
    for build in (graphs.refuse, graphs.refuse_behind):
        function = foreach_partition(build)
        assert_readable(failure_of(partial(rdd.foreachPartition, function)))


def test_a_failed_actor_is_readable_in_sql(spark: SparkSession, failure_of: Failure) -> None:
    frame = spark.range(10, numPartitions=1)
    for build in (graphs.refuse, graphs.refuse_behind):
        assert_readable(failure_of(frame.mapInArrow(map_in_arrow(build), "id long").collect))


def assert_readable(shown: str) -> None:
    assert "actor '/refuse' failed in partition 0: ValueError: no such author" in shown
    assert "in divide" in shown, "the actor's own traceback is missing"
    assert shown.count("ZeroDivisionError: division by zero") == 1, "the cause belongs there once"


def test_a_job_after_a_failed_one_is_clean(spark: SparkSession, failure_of: Failure) -> None:
    rdd = spark.sparkContext.parallelize(range(200), 2)
    failure_of(lambda: rdd.foreachPartition(foreach_partition(graphs.refuse, batch_size=10)))
    told = rdd.mapPartitions(map_partitions(graphs.tally, flush=True)).collect()
    assert [row[3] for row in told] == [100, 100]


def test_a_stuck_actor_fails_its_own_task(spark: SparkSession, failure_of: Failure) -> None:
    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(graphs.Stuck, name="stuck")

    rdd = spark.sparkContext.parallelize(range(200), 2)
    function = foreach_partition(build, batch_size=10, drain_timeout=0.1)
    shown = failure_of(lambda: rdd.mapPartitions(graphs.until_stuck).foreachPartition(function))
    assert "DrainTimeout" in shown
    assert "/stuck" in shown
    assert "threading.Event().wait()" in shown, "the stack says where"
    told = rdd.mapPartitions(map_partitions(graphs.tally, flush=True)).collect()
    assert [row[3] for row in told] == [100, 100]


def test_an_upstream_error_fails_the_job_and_is_told_whatever_the_actors_saw(
    spark: SparkSession, failure_of: Failure, tmp_path: Path
) -> None:
    class Witness(Actor[Any]):
        def __init__(self, folder: str) -> None:
            self.folder = folder
            self.rows = 0

        def receive(self, message: Any) -> None:
            if isinstance(message, PartitionEnd):
                Path(self.folder, str(self.rows)).touch()
            else:
                self.rows += len(message)

    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Witness, str(tmp_path))

    bad = spark.range(40_000, numPartitions=1).withColumn(
        "id", expr("if(id = 30000, raise_error('upstream is broken'), id)")
    )
    shown = failure_of(lambda: bad.foreachPartition(foreach_partition(build, flush=True)))
    assert "upstream is broken" in shown
    assert "PartitionFailed" not in shown
    # Spark ends the worker's input or its process, when it likes: an end may have been seen.
    assert all(int(seen.name) <= 30_000 for seen in tmp_path.iterdir())


def test_an_unknown_entry_point_is_named(spark: SparkSession, failure_of: Failure) -> None:
    frame = spark.range(10, numPartitions=1)
    shown = failure_of(frame.mapInArrow(map_in_arrow(graphs.echo, entry="ecko"), "id long").count)
    assert "no entry point 'ecko': build returned entry points 'echo'" in shown


@pytest.mark.parametrize(
    ("schema", "says"),
    [
        ("id string", "struct<id:string>: Spark cannot read string from column 'id' of type"),
        ("number long", "struct<number:bigint>: expected the columns ['number'], got ['id']"),
    ],
)
def test_a_schema_that_does_not_fit_is_told_with_what_came(
    spark: SparkSession, failure_of: Failure, schema: str, says: str
) -> None:
    frame = spark.range(10, numPartitions=1)
    function = map_in_arrow(graphs.echo, schema=schema)
    shown = failure_of(frame.mapInArrow(function, schema).collect)
    assert f"the entry point answered id: int64, but schema= is {says}" in shown


def test_a_limit_above_the_results_leaves_the_next_job_whole(spark: SparkSession) -> None:
    frame = spark.range(50_000, numPartitions=2)
    back = frame.mapInArrow(map_in_arrow(graphs.echo), "id long")
    assert len(back.limit(10).collect()) == 10
    assert back.filter(col("id") >= 0).count() == 50_000


def test_results_of_an_rdd_that_nobody_reads_to_the_end_leave_nothing(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize(range(1000), 2)
    count = map_partitions(graphs.tally, flush=True)
    some = rdd.mapPartitions(map_partitions(graphs.echo, batch_size=10))
    assert some.mapPartitions(lambda rows: islice(rows, 1)).collect() == [0, 500]
    assert [row[3] for row in rdd.mapPartitions(count).collect()] == [500, 500]


def test_early_results_do_not_wait_for_a_stuck_actor(spark: SparkSession) -> None:
    class Second(Actor[Any]):
        def receive(self, message: Any) -> Any:
            if message[0] > 0:
                threading.Event().wait()
            return message

    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Second)

    rdd = spark.sparkContext.parallelize(range(100), 1)
    patient = map_partitions(build, batch_size=10, in_flight=2, drain_timeout=3600)
    assert rdd.mapPartitions(patient).take(1) == [0]
    assert rdd.mapPartitions(map_partitions(graphs.echo)).count() == 100


def test_chained_graphs_of_one_stage_share_the_task(spark: SparkSession) -> None:
    rdd = spark.sparkContext.parallelize(range(1000), 2)
    once = rdd.mapPartitions(map_partitions(graphs.echo, batch_size=10))
    told = once.mapPartitions(map_partitions(graphs.tally, flush=True)).collect()
    assert [row[3] for row in told] == [500, 500]


def test_a_session_of_the_user_is_left_alone(spark: SparkSession) -> None:
    before = spark.sparkContext.getConf().getAll()
    assert session("local[1]", "another", **{"spark.ui.enabled": "true"}) is spark
    assert spark.sparkContext.getConf().getAll() == before


def test_a_new_session_leaves_the_environment_as_it_was(spark: SparkSession) -> None:
    assert spark.sparkContext.pythonExec == sys.executable
    assert {name: os.environ.get(name) for name in ENVIRONMENT} == ENVIRONMENT
