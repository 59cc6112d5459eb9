"""The steps of a write, in the tasks and at its end; importing this module needs PySpark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pyspark.sql.datasource import WriterCommitMessage

from callboard.remote import (
    Connection,
    ShardAttempt,
    ShardedConnection,
    ShardedUpload,
    StagedAttempt,
    UploadWriter,
)
from callboard.remote.errors import BatchCommitted, RemoteError
from callboard.remote.protocol.staged_rows import BatchName
from callboard.spark.context import PartitionContext
from callboard.spark.source.source_options import RemoteEntry
from callboard.spark.source.upload_task import upload_partition
from callboard.spark.tasks.reporting import reported

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """A task's report: which job's rows it has staged, and as which attempts, if any."""

    job: str
    winners: tuple[ShardAttempt, ...] = ()
    committed: frozenset[int] = frozenset()
    """The servers that had committed the batch before: they are left as they are."""


@reported
def upload(place: RemoteEntry, name: BatchName, batches: Iterable[pa.RecordBatch]) -> Staged:
    """In a task: upload its partition.

    The attempt has a random number. Those of Spark begin anew with each driver, and so may be those
    of attempts that a driver has left behind when it was killed.
    """
    partition = PartitionContext.current().partition_id
    attempt = uuid4().int >> 64

    ids: dict[str, Any] = {**name._asdict(), "partition": partition, "attempt": attempt}

    def begin(connection: Connection | ShardedConnection) -> UploadWriter | ShardedUpload:
        if isinstance(connection, ShardedConnection):
            assert place.by is not None
            return connection.upload(place.entry, by=place.by, skip_committed=True, **ids)
        return connection.upload(place.entry, **ids)

    try:
        upload = upload_partition(place.connect, begin, batches)
    except BatchCommitted:
        if len(place.urls) > 1:  # a commit of this moment, and the next attempt leaves it out
            raise
        return Staged(name.job, committed=frozenset({0}))
    if upload is None:
        return Staged(name.job)
    if isinstance(upload, ShardedUpload):
        return Staged(name.job, tuple(upload.staged), frozenset(upload.committed))
    assert upload.staged is not None
    return Staged(name.job, (ShardAttempt(0, *upload.staged),))


def commit(
    place: RemoteEntry, name: BatchName, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """Commit the rows that tasks have staged, on all servers except where a task found the batch
    committed.

    A call that ended between the commits of two servers is made good by a repeated write: its tasks
    find which have committed.
    """
    staged = [message for message in messages if isinstance(message, Staged)]
    left = set(range(len(place.urls))).difference(*[message.committed for message in staged])
    if not left:
        return
    winners = [each for message in staged for each in message.winners if each.shard in left]
    with place.connect() as connection:
        if isinstance(connection, ShardedConnection):
            connection.commit(name.job, name.batch, winners, shards=left)
        else:
            connection.commit(name.job, name.batch, [StagedAttempt(*each[1:]) for each in winners])


def abort(place: RemoteEntry, name: BatchName) -> None:
    """Drop the staged rows. If that fails now, they go by age, or with the batch's commit."""
    with suppress(RemoteError), place.connect() as connection:
        connection.abort(name.job, name.batch)
