"""Functions for Spark's partition methods that feed each partition to a graph of actors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from callboard.core.checks import whole
from callboard.core.errors import ConfigError
from callboard.rows.batches import Batches
from callboard.spark.errors import AnswerError
from callboard.spark.frames.schema import checked, parsed
from callboard.spark.tasks.counters import TaskCounters
from callboard.spark.tasks.feed import Build, Feed, PartitionOptions
from callboard.spark.tasks.reporting import reported
from callboard.spark.tasks.settings import Workers

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def record_batches(answer: Any) -> Iterable[pa.RecordBatch]:
    """Return the record batches of one answer; raise AnswerError when it is something else."""
    import pyarrow as pa

    if isinstance(answer, pa.RecordBatch):
        return (answer,)
    if answer is None:
        return ()
    if isinstance(answer, pa.Table):
        batches: list[pa.RecordBatch] = answer.to_batches()
        return batches
    if isinstance(answer, Iterable) and not isinstance(answer, (str, bytes)):
        return (batch for part in answer for batch in record_batches(part))
    raise AnswerError("record batches, tables, or None", answer)


def foreach_partition(
    build: Build,
    *,
    entry: str | None = None,
    batch_size: int = 1024,
    in_flight: int = 4,
    flush: bool = False,
    lifetime: Literal["task", "process"] = "task",
    workers: Workers | None = None,
    drain_timeout: float = 300.0,
    config: Any = None,
    counters: TaskCounters | None = None,
) -> Callable[[Iterable[Any]], None]:
    """Return a function for `rdd.foreachPartition` and `DataFrame.foreachPartition`.

    In each task `build(system, context)` spawns the actors, in the task's thread. It returns the
    ref of the entry point, or a dict of names and refs, from which `entry` chooses one. The entry
    point then receives the partition's rows as lists of `batch_size`; its answers are ignored. The
    other options are described by `callboard.spark.tasks.feed.PartitionOptions`.

    Raises ConfigError for an option that is out of range, and CaptureError when `build` captured,
    or `config` holds, an object that cannot be pickled, such as a ref; with `lifetime="process"`
    also for an accumulator, which Spark makes anew for each task.

    In the task, PartitionFailed carries an actor's exception, EntryPointError shows the wrong
    result of `build`, and DrainTimeout names an actor that is stuck. Effects of actors happen at
    least once: Spark may run a partition again, or twice at a time.
    """
    batch_size = whole("batch_size", batch_size, error=ConfigError)
    options = PartitionOptions(
        entry, in_flight, flush, lifetime, workers, drain_timeout, config, counters
    )
    return partial(_for_each, Feed(build, options), batch_size)


def map_partitions(
    build: Build,
    *,
    entry: str | None = None,
    batch_size: int = 1024,
    in_flight: int = 4,
    flush: bool = False,
    lifetime: Literal["task", "process"] = "task",
    workers: Workers | None = None,
    drain_timeout: float = 300.0,
    config: Any = None,
    counters: TaskCounters | None = None,
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function for `rdd.mapPartitions`.

    As `foreach_partition`, but the entry point answers each list of rows with an iterable of rows,
    or with None for no rows. The results are in the order of the batches. An answer may also be the
    future of an ask to another actor: it is waited for, while the entry point already goes on. With
    `flush` the answer to `PartitionEnd` ends the results. The task's thread reads an answer while
    the actors go on. So do not answer a generator over data, or a view of data, that later batches
    change.

    Results count once, as all that Spark returns; AnswerError is raised for other answers.
    """
    batch_size = whole("batch_size", batch_size, error=ConfigError)
    options = PartitionOptions(
        entry, in_flight, flush, lifetime, workers, drain_timeout, config, counters
    )
    return partial(_map, Feed(build, options), batch_size)


def map_in_arrow(
    build: Build,
    *,
    entry: str | None = None,
    in_flight: int = 4,
    flush: bool = False,
    lifetime: Literal["task", "process"] = "task",
    workers: Workers | None = None,
    drain_timeout: float = 300.0,
    config: Any = None,
    counters: TaskCounters | None = None,
    schema: StructType | str | None = None,
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for `DataFrame.mapInArrow`.

    As `map_partitions`, with Arrow record batches as Spark makes them
    (`spark.sql.execution.arrow.maxRecordsPerBatch` rows each): the entry point answers each with
    a `RecordBatch`, a `Table`, an iterable of them, or None.

    Each batch that comes back is checked against `schema`, the one that `mapInArrow` is given; a
    string needs an active session. SchemaError says what differs, where Spark's own error does not,
    and where Spark would take a wrong name or type for right. A type that Spark reads as the schema
    says passes: strings of any collation, the values of a user-defined type, a column of only
    nulls.
    """
    options = PartitionOptions(
        entry, in_flight, flush, lifetime, workers, drain_timeout, config, counters
    )
    feed = Feed(build, options)
    return partial(_map_in_arrow, feed, None if schema is None else parsed(schema))


@reported
def _for_each(feed: Feed, batch_size: int, rows: Iterable[Any]) -> None:
    for _ in feed.outputs(Batches("a partition", rows, batch_size), _none):
        pass


@reported
def _map(feed: Feed, batch_size: int, rows: Iterable[Any]) -> Iterator[Any]:
    yield from feed.outputs(Batches("a partition", rows, batch_size), _rows)


@reported
def _map_in_arrow(
    feed: Feed, schema: StructType | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    answers = feed.outputs(batches, record_batches)
    yield from answers if schema is None else checked(answers, schema)


def _none(answer: Any) -> Iterable[Any]:
    return ()


def _rows(answer: Any) -> Iterable[Any]:
    if answer is None:
        return ()
    if isinstance(answer, (str, bytes)) or not isinstance(answer, Iterable):
        raise AnswerError("an iterable of rows, or None", answer)
    return answer
