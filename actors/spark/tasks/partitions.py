"""Functions for Spark's partition methods that feed partitions to graphs of actors."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from callboard.core.checks import whole
from callboard.core.errors import ConfigError
from callboard.rows.batches import Batches
from callboard.spark.errors import SchemaError
from callboard.spark.frames.schema import checked, parsed
from callboard.spark.tasks.feed import Build, Feed, PartitionOptions
from callboard.spark.tasks.reporting import reported

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def record_batches(answer: Any) -> Iterable[pa.RecordBatch]:
    """Return the record batches of one answer. Raises SchemaError for other answers."""
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
    raise _wrong_answer("record batches, tables, or None", answer)


def foreach_partition(
    build: Build,
    *,
    batch_size: int = 1024,
    **options: Unpack[PartitionOptions],
) -> Callable[[Iterable[Any]], None]:
    """Return a function for `rdd.foreachPartition` and `DataFrame.foreachPartition`.

    Effects of actors happen at least once: Spark may run a partition again, or twice at the same
    time.

    Args:
        build: Called in each task as `build(system, context)`, in the task's thread. It spawns the
            actors, and returns the ref of the entry point, or a dict of refs by name, from which
            `entry` chooses one.
        batch_size: The number of rows in a list. The entry point gets the partition's rows in
            lists; its answers are ignored.
        **options: Those of `callboard.spark.tasks.feed.PartitionOptions`.

    Raises:
        ConfigError: An option is out of range.
        CaptureError: `build` captures, or `config` holds, an object that cannot be pickled, such as
            a ref; with `lifetime="process"` also an accumulator, which Spark creates again for
            each task.

    In the task, PartitionFailed has an actor's exception, ConfigError shows a wrong result of
    `build`, and DrainTimeout names a stuck actor.
    """
    batch_size = whole("batch_size", batch_size, error=ConfigError)
    return partial(_for_each, Feed(build, options), batch_size)


def map_partitions(
    build: Build,
    *,
    batch_size: int = 1024,
    **options: Unpack[PartitionOptions],
) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """Return a function for `rdd.mapPartitions`.

    Like `foreach_partition`, but the entry point answers each list of rows with an iterable of
    rows, or with None. The results are in the order of the batches. An answer may also be the
    future of an ask to another actor, which is awaited while the entry point continues. With
    `flush`, the answer to `PartitionEnd` ends the results. The task's thread reads an answer while
    the actors continue, so an answer must not be a generator over data, or a view of data, that
    later batches change.

    Results count once, like all results of Spark. Other answers raise SchemaError.
    """
    batch_size = whole("batch_size", batch_size, error=ConfigError)
    return partial(_map, Feed(build, options), batch_size)


def map_in_arrow(
    build: Build,
    *,
    schema: StructType | str | None = None,
    **options: Unpack[PartitionOptions],
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for `DataFrame.mapInArrow`.

    Like `map_partitions`, but for Arrow record batches as Spark makes them, with
    `spark.sql.execution.arrow.maxRecordsPerBatch` rows each. The entry point answers each with a
    `RecordBatch`, a `Table`, an iterable of these, or None.

    Each answered batch is checked against `schema`, that of `mapInArrow`; a string requires an
    active session. Unlike Spark's own error, SchemaError names the difference, and it is also
    raised where Spark would accept a wrong name or type. A type that Spark reads as the schema's is
    accepted: strings of any collation, the values of a user-defined type, a column with only nulls.
    """
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
        raise _wrong_answer("an iterable of rows, or None", answer)
    return answer


def _wrong_answer(wanted: str, answer: object) -> SchemaError:
    kind = type(answer).__name__
    return SchemaError(f"expected an answer of {wanted}, got {answer!r:.100} ({kind})")
