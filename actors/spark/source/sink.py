"""The steps of a write, in the tasks and at its end; importing this module needs PySpark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql.datasource import WriterCommitMessage

from callboard.remote import ShardAttempt
from callboard.remote.errors import BatchCommitted, RemoteError
from callboard.remote.protocol.requests import BatchName
from callboard.spark.source import remote_entry
from callboard.spark.source.remote_entry import RemoteEntry
from callboard.spark.tasks.reporting import reported

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Staged(WriterCommitMessage):
    """A task's report: the job whose rows it has staged, and the attempts, if any."""

    job: str
    winners: tuple[ShardAttempt, ...] = ()
    committed: frozenset[int] = frozenset()
    """The servers that had committed the batch before, which are left as they are."""


@reported
def upload(remote: RemoteEntry, name: BatchName, batches: Iterable[pa.RecordBatch]) -> Staged:
    """In a task: upload its partition.

    The attempt has a random number. Spark's own numbers start again with each driver, so those of a
    killed driver's attempts could come again.
    """
    try:
        winners, committed = remote.upload(name, uuid4().int >> 64, batches, skip_committed=True)
    except BatchCommitted:
        if remote.servers > 1:  # committed at this moment: the next attempt leaves that shard out
            raise
        return Staged(name.job, committed=frozenset({0}))
    return Staged(name.job, tuple(winners), frozenset(committed))


def commit(
    remote: RemoteEntry, name: BatchName, messages: Sequence[WriterCommitMessage | None]
) -> None:
    """Commit the staged rows, except on servers where a task found the batch committed.

    If a call ends between the commits of two servers, a repeated write completes it: its tasks find
    which servers have committed.
    """
    staged = [message for message in messages if isinstance(message, Staged)]
    left = set(range(remote.servers)).difference(*[message.committed for message in staged])
    if not left:
        return
    winners = [each for message in staged for each in message.winners if each.shard in left]
    with remote.connect() as connection:
        remote_entry.commit(connection, name, winners, left)


def abort(remote: RemoteEntry, name: BatchName) -> None:
    """Drop the staged rows. If that fails now, they go by age, or with the batch's commit."""
    with suppress(RemoteError), remote.connect() as connection:
        connection.abort(name.job, name.batch)
