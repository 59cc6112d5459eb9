"""Ranges of published rows, read in tasks; importing this module needs PySpark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from callboard.remote import PublishedRows, ShardedConnection
from callboard.spark.errors import SchemaError
from callboard.spark.frames.schema import arrow_schema
from callboard.spark.frames.times import mixes_clocks
from callboard.spark.source.remote_entry import RemoteEntry
from callboard.spark.tasks.reporting import reported

if TYPE_CHECKING:
    import pyarrow as pa


class RowRange(InputPartition):
    """The range that one task reads: the rows of a shard from `start` on, before `end`."""

    def __init__(self, start: int, end: int, shard: int = 0) -> None:
        super().__init__((start, end, shard))
        self.start = start
        self.end = end
        self.shard = shard


@contextmanager
def published(remote: RemoteEntry) -> Iterator[list[PublishedRows]]:
    """Give the published rows of an entry point, by server, over new connections."""
    connection = remote.connect()
    servers = connection.shards if isinstance(connection, ShardedConnection) else [connection]
    try:
        yield [server.published(remote.entry) for server in servers]
    finally:
        connection.close()


def divided(start: int, end: int, parts: int, shard: int = 0) -> list[RowRange]:
    """Divide a range into non-empty parts, whose sizes differ by at most one."""
    rows = end - start
    parts = min(parts, rows)
    bounds = [start + rows * part // parts for part in range(parts + 1)] if parts else []
    return [RowRange(bounds[at], bounds[at + 1], shard) for at in range(parts)]


@reported
def read(
    remote: RemoteEntry, wanted: InputPartition, schema: StructType
) -> Iterator[pa.RecordBatch]:
    """In a task: yield the rows of a range, with Spark's Arrow types for its schema.

    Raises NotPublished, and SchemaError if a conversion would change a value.
    """
    assert isinstance(wanted, RowRange)
    columns = arrow_schema(schema)
    connection = remote.connect_to(wanted.shard)
    try:
        for batch in connection.published(remote.entry).read(wanted.start, wanted.end):
            yield batch if batch.schema.equals(columns) else _cast(batch, columns)
    finally:
        connection.close()


def _cast(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    try:
        cast = batch.cast(columns)
        for was, is_ in zip(batch.schema, columns, strict=True):
            if mixes_clocks(was.type, is_.type):
                raise ValueError(
                    f"column {was.name!r}: a time without a zone is a timestamp_ntz, and one with "
                    "a zone a timestamp; they cannot be converted"
                )
        return cast
    except ValueError as error:  # Arrow's errors are such
        was, is_ = (str(each).replace("\n", ", ") for each in (batch.schema, columns))
        raise SchemaError(f"published rows {was} do not fit {is_}: {error}") from error
