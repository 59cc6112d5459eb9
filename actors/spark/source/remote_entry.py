"""An entry point of a server, or of servers that are its shards, which tasks upload to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, NamedTuple

from callboard.core.errors import ConfigError
from callboard.remote import (
    Connection,
    ShardAttempt,
    ShardedConnection,
    StagedAttempt,
    connect,
    connect_sharded,
)
from callboard.remote.protocol.requests import BatchName
from callboard.remote.protocol.shard import Shard
from callboard.spark.context import PartitionContext

if TYPE_CHECKING:
    import pyarrow as pa


class Uploaded(NamedTuple):
    """A task's staged attempts, and the shards that had committed the batch before."""

    winners: list[ShardAttempt]
    committed: Collection[int] = ()


class RemoteEntry(NamedTuple):
    """An entry point of a server, or of the shards of one, and the arguments of `connect`."""

    url: str | tuple[str, ...]
    """The address of a server, or the addresses of shards."""
    entry: str
    options: dict[str, Any]
    by: str | Sequence[str] | None = None
    """The column of a row's key, or several; None for one server, and for reads."""

    @property
    def servers(self) -> int:
        """The number of servers."""
        return 1 if isinstance(self.url, str) else len(self.url)

    def connect(self) -> Connection | ShardedConnection:
        """Connect, as `callboard.remote.connect` does, or to all shards, as `connect_sharded`."""
        if isinstance(self.url, str):
            return connect(self.url, **self.options)
        return connect_sharded(self.url, **self.options)

    def connect_to(self, shard: int) -> Connection:
        """Connect to one of the servers."""
        if isinstance(self.url, str):
            return connect(self.url, **self.options)
        return connect(self.url[shard], shard=str(Shard(shard, self.servers)), **self.options)

    def upload(
        self, name: BatchName, attempt: int, batches: Iterable[pa.RecordBatch], **of_shards: Any
    ) -> Uploaded:
        """Upload a task's partition. Connects when there is a row.

        `of_shards` are options of `ShardedConnection.upload()`. Raises BatchCommitted,
        UploadRefused, ConnectionLost, and the arguments' exceptions.
        """
        source = (batch for batch in batches if batch.num_rows)
        first = next(source, None)
        if first is None:
            return Uploaded([])
        partition = PartitionContext.current().partition_id
        ids: dict[str, Any] = {**name._asdict(), "partition": partition, "attempt": attempt}
        with closing(self.connect()) as connection:
            if isinstance(connection, ShardedConnection):
                assert self.by is not None
                sharded = connection.upload(self.entry, by=self.by, **of_shards, **ids)
                with sharded:
                    _send(sharded, first, source)
                return Uploaded(sharded.staged, sharded.committed)
            with connection.upload(self.entry, **ids) as upload:
                _send(upload, first, source)
            assert upload.staged is not None
            return Uploaded([ShardAttempt(0, *upload.staged)])


def _send(upload: Any, first: pa.RecordBatch, source: Iterable[pa.RecordBatch]) -> None:
    upload.send_batch(first)
    for batch in source:
        upload.send_batch(batch)


def commit(
    connection: Connection | ShardedConnection,
    name: BatchName,
    winners: Iterable[ShardAttempt],
    shards: Collection[int],
) -> None:
    """Commit a batch on a server, or on these shards."""
    if isinstance(connection, ShardedConnection):
        connection.commit(*name, winners, shards=shards)
    else:
        connection.commit(*name, [StagedAttempt(*winner[1:]) for winner in winners])


def refuse_without_columns(names: Sequence[str]) -> None:
    """Raise ConfigError for a frame without columns: Spark tells a task nothing of its rows."""
    if not names:
        raise ConfigError(
            "the frame has no columns, and Spark delivers no rows of such a frame: select one"
        )
