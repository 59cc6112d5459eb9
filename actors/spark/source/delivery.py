"""Partitions of a frame to an entry point of a server, or of several, each row counted once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.remote import (
    Connection,
    ShardAttempt,
    ShardedConnection,
    ShardedUpload,
    StagedAttempt,
    UploadWriter,
    connect,
    connect_sharded,
)
from callboard.remote.errors import BatchCommitted, RemoteError
from callboard.spark.context import PartitionContext
from callboard.spark.source.upload_task import refuse_without_columns, upload_partition
from callboard.spark.tasks.reporting import reported

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

_WINNERS = "shard long, partition long, attempt long, rows long"


def deliver(
    frame: DataFrame,
    url: str | Sequence[str],
    entry: str,
    *,
    job: str,
    batch: int = 0,
    by: str | Sequence[str] | None = None,
    **options: Any,
) -> bool:
    """Send the rows of `frame` to an entry point of a server, where each counts once.

    Each task uploads its partition, as record batches; when all are there the driver commits the
    attempts that Spark took. So tasks may fail, repeat and race. A call that is repeated with the
    same `job` and `batch` changes nothing: it returns False at once. In `foreachBatch`, `job` is a
    name for the query, as long as it has one checkpoint, and `batch` the epoch id. The rows come by
    partition; in a partition as Spark has them.

    A list of addresses means servers that are shards of one, as for `connect_sharded`. Each row
    goes to the shard of its key: `by` is the name of the key's column, or several. Every shard
    commits its part for itself. A call that ended between two commits, for whatever reason, is to
    be repeated: a shard that has committed the batch is left alone, and the others get their rows.
    So the frame must have the same rows then, in any order and partitions. Its sources must still
    be there, and nothing in it may be random.

    `options` are those of `callboard.remote.connect`, for the driver and the tasks: `secret_file`
    is read where they run. Raises Spark's exception for a failed task; the staged rows are dropped,
    and the call can be repeated. Raises UploadRefused, NotUploaded, and ConnectionLost, after which
    the same call tells the outcome. Raises ConnectionRejected where a server is not the shard of
    its place, and ConfigError for invalid arguments, and a frame without columns.
    """
    if not isinstance(url, str | Sequence):
        raise ConfigError(f"url is the address of a server, or of several, not {safe_repr(url)}")
    refuse_without_columns(frame.columns)
    target = _Target(url if isinstance(url, str) else tuple(url), entry, job, batch, by, options)
    with target.connect() as connection:
        try:
            # Tasks of an earlier attempt at the batch end here.
            if isinstance(connection, ShardedConnection):
                shards = connection.abort(job, batch)
            else:
                shards = [0]
                connection.abort(job, batch)
        except BatchCommitted:
            return False
        winners = _run(connection, frame, target, shards)
        if isinstance(connection, ShardedConnection):
            connection.commit(job, batch, winners, shards=shards)
        else:
            connection.commit(job, batch, [StagedAttempt(*winner[1:]) for winner in winners])
    return True


class _Target(NamedTuple):
    """Where the rows of a batch go to."""

    url: str | tuple[str, ...]
    entry: str
    job: str
    batch: int
    by: str | Sequence[str] | None
    options: dict[str, Any]

    def connect(self) -> Connection | ShardedConnection:
        """Connect to the server, or to the shards. Raises ConfigError for a `by` that is wrong."""
        if isinstance(self.url, str):
            if self.by is not None:
                raise ConfigError("by= is for a list of servers, and one address is given")
            return connect(self.url, **self.options)
        if not isinstance(self.by, str | Sequence):
            raise ConfigError(
                "several servers want by=, the name of the key's column, or several names, not "
                + safe_repr(self.by)
            )
        return connect_sharded(self.url, **self.options)


def _run(
    connection: Connection | ShardedConnection,
    frame: DataFrame,
    target: _Target,
    shards: Collection[int],
) -> list[ShardAttempt]:
    try:
        found = frame.mapInArrow(partial(_upload, target, shards), _WINNERS).collect()
    except BaseException:
        with suppress(RemoteError):  # the servers drop it by age, then
            connection.abort(target.job, target.batch)
        raise
    return [ShardAttempt(*row) for row in found]


@reported
def _upload(
    target: _Target, shards: Collection[int], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """In a task: upload its partition, and return which attempt this is, unless it is empty."""
    import pyarrow as pa

    upload = upload_partition(target.connect, partial(_begin, target, shards), batches)
    if upload is None:
        return
    if isinstance(upload, ShardedUpload):
        winners = upload.staged
    else:
        assert upload.staged is not None
        winners = [ShardAttempt(0, *upload.staged)]
    names = [field.split()[0] for field in _WINNERS.split(", ")]
    columns = [pa.array(column, pa.int64()) for column in zip(*winners, strict=True)]
    if columns:
        yield pa.RecordBatch.from_arrays(columns, names)


def _begin(
    target: _Target, shards: Collection[int], connection: Connection | ShardedConnection
) -> UploadWriter | ShardedUpload:
    context = PartitionContext.current()
    ids: dict[str, Any] = {
        "job": target.job,
        "batch": target.batch,
        "partition": context.partition_id,
        "attempt": context.task_attempt_id,
    }
    if isinstance(connection, ShardedConnection):
        assert target.by is not None
        return connection.upload(target.entry, by=target.by, shards=shards, **ids)
    return connection.upload(target.entry, **ids)
