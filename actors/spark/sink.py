"""What a write does, in the tasks and at its end; this module needs PySpark to be imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql.datasource import WriterCommitMessage

from callboard.remote import BatchCommitted, Connection, RemoteError, StageWriter, Winner
from callboard.remote.staging.messages import BatchName
from callboard.spark.context import PartitionContext
from callboard.spark.source_options import RemoteEntry
from callboard.spark.stage_task import stage_partition

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """What a task has done: which job's rows it has staged, and as which attempt, if any."""

    job: str
    winner: Winner | None = None
    is_committed: bool = False
    """Whether the batch was committed before: then it is left as it is."""


def stage(place: RemoteEntry, name: BatchName, batches: Iterable[pa.RecordBatch]) -> Staged:
    """In a task: stage its partition.

    The attempt has a random number. Those of Spark begin anew with each driver, and so may be those
    of attempts that a driver has left behind when it was killed.
    """
    partition = PartitionContext.current().partition_id
    attempt = uuid4().int >> 64

    def begin(connection: Connection) -> StageWriter:
        return connection.stage(
            place.entry, job=name.job, batch=name.batch, partition=partition, attempt=attempt
        )

    try:
        stage = stage_partition(place.connect, begin, batches)
    except BatchCommitted:
        return Staged(name.job, is_committed=True)
    return Staged(name.job, None if stage is None else stage.staged)


def commit(
    place: RemoteEntry, name: BatchName, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """Commit what tasks have staged, unless one of them has found the batch committed."""
    staged = [message for message in messages if isinstance(message, Staged)]
    if any(message.is_committed for message in staged):
        return
    winners = [message.winner for message in staged if message.winner is not None]
    with place.connect() as connection:
        connection.commit(name.job, name.batch, winners)


def abort(place: RemoteEntry, name: BatchName) -> None:
    """Drop what is staged. What cannot be dropped now goes by age, or with the batch's commit."""
    with suppress(RemoteError), place.connect() as connection:
        connection.abort(name.job, name.batch)
