"""Delivers a frame to an entry point of one or several servers, each row exactly once."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.remote import ShardAttempt, ShardedConnection
from callboard.remote.errors import BatchCommitted, RemoteError
from callboard.remote.protocol.requests import BatchName
from callboard.spark.context import PartitionContext
from callboard.spark.source.remote_entry import RemoteEntry, commit, refuse_without_columns
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
    """Send the rows of a frame to an entry point, exactly once.

    Each task uploads its partition as record batches; then the driver commits the attempts that
    Spark accepted. So tasks may fail, repeat and race. The rows arrive by partition, and within a
    partition in Spark's order.

    With several servers, each commits its part separately. If a call ended between two commits,
    repeat it: shards that have committed the batch are left as they are, and the others get their
    rows. The frame must then have the same rows, in any order and partitions: its sources must
    still exist, and nothing in it may be random.

    Args:
        frame: The rows.
        url: The address of a server, or a list of the addresses of shards, as for
            `connect_sharded`.
        entry: The name of the entry point.
        job: A unique name; in `foreachBatch`, one for each checkpoint of the query.
        batch: The number of the batch in the job; in `foreachBatch` the epoch id.
        by: The name of the key column, or several names; the key decides a row's shard.
        **options: Options of `callboard.remote.connect`, for the driver and the tasks:
            `secret_file` is read on each machine.

    Returns:
        False if the batch was already committed, in which case nothing changes; otherwise True.

    Raises:
        ConfigError: An argument is invalid, or the frame has no columns.
        ConnectionRejected: A server is not the shard of its place in the list.
        UploadRefused: The server accepts no rows now.
        NotUploaded: A server has lost staged rows.
        ConnectionLost: The outcome is unknown; repeat the call to find out.

    A failed task raises Spark's exception; the staged rows are dropped, and the call can be
    repeated.
    """
    if not isinstance(url, str | Sequence):
        raise ConfigError(f"url expects one or several addresses, got {safe_repr(url)}")
    if isinstance(url, str) and by is not None:
        raise ConfigError("by= is for a list of servers, and one address is given")
    if not isinstance(url, str) and not isinstance(by, str | Sequence):
        raise ConfigError(
            "several servers need by=, the name of the key's column, or several names, got "
            + safe_repr(by)
        )
    refuse_without_columns(frame.columns)
    name = BatchName(job, batch)
    remote = RemoteEntry(url if isinstance(url, str) else tuple(url), entry, options, by)
    with remote.connect() as connection:
        try:
            # Tasks of an earlier attempt at the batch end here.
            if isinstance(connection, ShardedConnection):
                shards = connection.abort(job, batch)
            else:
                shards = [0]
                connection.abort(job, batch)
        except BatchCommitted:
            return False
        try:
            found = frame.mapInArrow(partial(_upload, remote, name, shards), _WINNERS).collect()
        except BaseException:
            with suppress(RemoteError):  # the servers drop it by age, then
                connection.abort(job, batch)
            raise
        commit(connection, name, [ShardAttempt(*row) for row in found], shards)
    return True


@reported
def _upload(
    remote: RemoteEntry,
    name: BatchName,
    shards: Collection[int],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    """In a task: upload its partition, and return its attempts, unless it is empty."""
    import pyarrow as pa

    attempt = PartitionContext.current().task_attempt_id
    winners = remote.upload(name, attempt, batches, shards=shards).winners
    names = [field.split()[0] for field in _WINNERS.split(", ")]
    columns = [pa.array(column, pa.int64()) for column in zip(*winners, strict=True)]
    if columns:
        yield pa.RecordBatch.from_arrays(columns, names)
