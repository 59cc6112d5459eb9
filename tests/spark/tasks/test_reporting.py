"""Errors that PySpark could not report: Spark would wait for their text forever."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from callboard import Actor, ActorRef, ActorSystem
from callboard.failures import FailureReport
from callboard.spark import PartitionContext, foreach_partition, map_partitions, spark_graph
from callboard.spark.errors import LONGEST, PartitionFailed
from callboard.spark.tasks.reporting import reported
from callboard.streams import entry

pytestmark = pytest.mark.timeout(300)  # Spark starts slowly on a busy machine

LONE = "half a pair: \ud83d."
ESCAPED = "half a pair: \\ud83d."


class Unshowable(Exception):
    """Has notes that cannot be had."""

    @property
    def __notes__(self) -> list[str]:  # type: ignore[override]
        raise RuntimeError("no notes")


class Row:
    def __repr__(self) -> str:
        return LONE


def failed_with(function: Callable[[], object]) -> str:
    """Return all that PySpark would send of the error, which has to be text."""
    with pytest.raises(PartitionFailed) as raised:
        function()
    text = "\n".join([str(raised.value), *raised.value.__notes__])
    assert text.encode()
    return text


def raising(error: BaseException) -> Callable[[Any], Any]:
    def function(row: Any) -> Any:
        raise error

    return function


class Failing(Actor[Any]):
    def receive(self, message: Any) -> None:
        raise ValueError(LONE)


def failing(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    return system.spawn(Failing)


def not_built(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
    raise ValueError(LONE)


def test_a_lone_surrogate_of_an_actor_or_an_operator_is_escaped() -> None:
    assert ESCAPED in failed_with(lambda: foreach_partition(failing)([1]))
    stream = entry("x").map(raising(ValueError(LONE)))
    told = failed_with(lambda: [*spark_graph(stream).map_partitions([Row()])])
    assert told.count(ESCAPED) >= 3  # of the row, of the error, and in the traceback


@pytest.mark.parametrize(
    "error",
    [
        ValueError(LONE),
        OSError(5, f"{LONE}\0"),
        Unshowable("why"),
        RuntimeError("many " * LONGEST),
        SystemExit(LONE),
    ],
    ids=lambda error: type(error).__name__,
)
def test_an_error_of_the_tasks_thread_can_be_reported(error: BaseException) -> None:
    told = failed_with(lambda: reported(raising(error))(1))
    assert told.startswith(f"the task failed in partition 0: {type(error).__name__}")

    @reported
    def rows() -> Iterator[int]:
        yield 1
        raise error

    given = rows()
    assert next(given) == 1
    assert failed_with(lambda: next(given)) is not None


def test_causes_and_notes_that_no_text_can_hold_are_escaped() -> None:
    error = ValueError("outside")
    error.__cause__ = ValueError(LONE)
    error.add_note(f"note: {LONE}")
    told = failed_with(lambda: reported(raising(error))(1))
    assert f"note: {ESCAPED}" in told
    assert told.count("\\ud83d") == 2  # the other is the cause's


def test_an_error_that_can_be_reported_is_left_as_it_is() -> None:
    error = KeyError("as usual", "\0")
    with pytest.raises(KeyError) as raised:
        reported(raising(error))(1)
    assert raised.value is error


def test_a_build_function_and_answers_that_raise_are_reported_too() -> None:
    def answers(system: ActorSystem, context: PartitionContext) -> ActorRef[Any]:
        return system.spawn(Generating)

    assert ESCAPED in failed_with(lambda: [*map_partitions(not_built)([1])])
    assert ESCAPED in failed_with(lambda: [*map_partitions(answers)([1])])


class Generating(Actor[Any]):
    def receive(self, message: Any) -> Any:
        return (raising(ValueError(LONE))(row) for row in message)


def test_a_very_long_text_is_cut_in_its_middle() -> None:
    error = RuntimeError(f"first {'x' * (10 * LONGEST)} last")
    failed = PartitionFailed("actor '/a'", FailureReport.of(error), 3)
    for text in (str(failed), failed.__notes__[0]):
        assert len(text) < LONGEST + 100
        assert "first " in text
        assert " characters) ..." in text
        assert text.strip().endswith(" last")


def test_the_functions_travel_by_their_names() -> None:
    function = spark_graph(entry("x")).map_in_arrow
    batch = pa.record_batch({"n": [1]})
    assert [*pickle.loads(pickle.dumps(function))([batch])] == [batch]


def test_a_lone_surrogate_does_not_hang_a_task(
    spark: SparkSession, failure_of: Callable[[Callable[[], object]], str]
) -> None:
    rdd = spark.sparkContext.parallelize(range(4), 1)
    for function in (map_partitions(failing), map_partitions(not_built)):
        assert ESCAPED in failure_of(lambda one=function: rdd.mapPartitions(one).collect())  # type: ignore[misc]
    stream = entry("x").map(raising(ValueError(LONE)))
    frame = spark.range(4)
    graph = spark_graph(stream, schema="id long").map_in_arrow
    assert ESCAPED in failure_of(frame.mapInArrow(graph, "id long").collect)
