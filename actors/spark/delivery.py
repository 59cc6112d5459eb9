"""Partitions of a frame to an entry point of a server, each row counted once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard.remote import BatchCommitted, Connection, RemoteError, Winner, connect
from callboard.remote.staging.messages import BatchName
from callboard.spark.context import PartitionContext
from callboard.spark.source_options import RemoteEntry
from callboard.spark.stage_task import stage_partition

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_WINNERS = "partition long, attempt long, rows long"


def deliver(
    frame: DataFrame, url: str, entry: str, *, job: str, batch: int = 0, **options: Any
) -> bool:
    """Send the rows of `frame` to an entry point of a server, where each counts once.

    Each task stages its partition, as record batches; when all are there the driver commits the
    attempts that Spark took. So it does not matter how often tasks fail, repeat and race, and a
    call that is repeated with the same `job` and `batch` changes nothing: it returns False at once.
    In `foreachBatch`, `job` is a name for the query, as long as it has one checkpoint, and `batch`
    the epoch id. The rows come by partition; in a partition as Spark has them.

    `options` are those of `callboard.remote.connect`, for the driver and the tasks: `token_file`
    is read where they run. Raises what Spark raises for a task that failed, after which nothing is
    left but the chance to try again; StageRefused, NotStaged, and ConnectionLost, after which the
    same call says what came of it.
    """
    with connect(url, **options) as connection:
        try:
            connection.abort(job, batch)  # tasks of an earlier attempt at the batch end here
        except BatchCommitted:
            return False
        stage = partial(_stage, url, entry, job, batch, options)
        winners = _run(connection, frame, stage, job, batch)
        connection.commit(job, batch, winners)
    return True


def _run(
    connection: Connection, frame: DataFrame, stage: Any, job: str, batch: int
) -> list[Winner]:
    try:
        found = frame.mapInArrow(stage, _WINNERS).collect()
    except BaseException:
        with suppress(RemoteError):  # the server drops it by age, then
            connection.abort(job, batch)
        raise
    return [Winner(*row) for row in found]


def _stage(
    url: str,
    entry: str,
    job: str,
    batch: int,
    options: dict[str, Any],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """In a task: stage its partition, and return which attempt this is, unless it is empty."""
    import pyarrow as pa

    context = PartitionContext.current()
    place, name = RemoteEntry(url, entry, options), BatchName(job, batch)
    staged = stage_partition(place, name, context.partition_id, context.task_attempt_id, batches)
    if staged is not None:
        names = [field.split()[0] for field in _WINNERS.split(", ")]
        columns = [pa.array([value], pa.int64()) for value in staged]
        yield pa.RecordBatch.from_arrays(columns, names)
