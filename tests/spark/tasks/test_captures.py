"""Objects that a partition function takes along to the workers, or refuses."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import graphs
from callboard import Actor, ActorRef, ActorSystem
from callboard.policies import RoundRobin
from callboard.spark import PartitionContext, foreach_partition, map_partitions
from callboard.spark.errors import CaptureError

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine


def test_an_actor_class_that_was_spawned_on_the_driver_can_be_shipped() -> None:
    class Doubled(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return [row * 2 for row in message]

    double = map_partitions(lambda system, context: system.spawn(Doubled))
    assert list(double([1])) == [2]  # in this process
    dumps: Any = cloudpickle.dumps
    for _ in range(2):
        double = cloudpickle.loads(dumps(double))
        assert list(double([1])) == [2]


def test_a_captured_lock_is_named_with_the_way_to_it() -> None:
    lock = threading.Lock()

    def connect() -> Any:
        return lock

    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(graphs.Tally, connect())

    with pytest.raises(CaptureError, match=r"build -> connect -> lock \(lock\) cannot be pickled"):
        foreach_partition(build)


def test_a_captured_ref_is_named_and_told_to_be_made_in_build() -> None:
    with ActorSystem() as system:
        sink = system.spawn(graphs.Echo)
        with pytest.raises(CaptureError, match=r"-> sink \(ActorRef\).*inside build"):
            foreach_partition(lambda _, context: sink)


def test_a_captured_system_is_named_and_told_to_be_made_in_build() -> None:
    mine = ActorSystem()
    with mine, pytest.raises(CaptureError, match=r"-> mine \(ActorSystem\).*inside build"):
        foreach_partition(lambda system, context: mine.spawn(graphs.Echo))


def test_a_configuration_that_cannot_be_pickled_is_refused_when_the_function_is_made() -> None:
    lock = threading.Lock()

    class Policy(RoundRobin):
        def __init__(self) -> None:
            super().__init__()
            self.lock = lock

    with pytest.raises(
        CaptureError, match=r"config -> \['placement'\] -> lock \(lock\) cannot be pickled"
    ):
        foreach_partition(graphs.echo, config={"placement": Policy()})


class Add(Actor[Any]):
    """Adds the number of rows to an accumulator."""

    def __init__(self, total: Any) -> None:
        self.total = total

    def receive(self, message: Any) -> None:
        if isinstance(message, list):
            self.total.add(len(message))


def add(total: Any, system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Add, total)


def test_an_accumulator_counts_every_row_of_every_task(spark: SparkSession) -> None:
    total = spark.sparkContext.accumulator(0)
    rows = spark.sparkContext.parallelize(range(20_000), 8)
    function = foreach_partition(partial(add, total))
    rows.foreachPartition(function)
    rows.foreachPartition(function)
    assert total.value == 40_000


def test_an_accumulator_in_a_kept_graph_is_refused_by_name(spark: SparkSession) -> None:
    total = spark.sparkContext.accumulator(0)

    def build(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return add(total, system, context)

    with pytest.raises(
        CaptureError, match=r"build -> total \(Accumulator\) cannot be kept .*lifetime='task'"
    ):
        foreach_partition(build, lifetime="process")


class Lookup(Actor[Any]):
    """Answers what a broadcast variable says of each row."""

    def __init__(self, names: Any) -> None:
        self.names = names

    def receive(self, message: Any) -> Any:
        return [self.names.value[row] for row in message] if isinstance(message, list) else None


def lookup(names: Any, system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Lookup, names)


@pytest.mark.parametrize("lifetime", ["task", "process"])
def test_a_broadcast_variable_is_read_in_every_task(spark: SparkSession, lifetime: Any) -> None:
    context = spark.sparkContext
    rows = context.parallelize([0, 1] * 4, 8)
    for names in (["a", "b"], ["c", "d"]):
        broadcast = context.broadcast(names)
        function = map_partitions(partial(lookup, broadcast), lifetime=lifetime)
        for _ in range(2):
            assert rows.mapPartitions(function).collect() == names * 4
        broadcast.destroy()


def test_a_destroyed_broadcast_fails_no_job_that_never_used_it(spark: SparkSession) -> None:
    names = spark.sparkContext.broadcast(["a"])
    foreach_partition(partial(lookup, names))
    names.destroy()
    assert spark.sparkContext.parallelize(range(4), 2).count() == 4
