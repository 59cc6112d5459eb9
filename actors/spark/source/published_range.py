"""Ranges of published rows, read in tasks; this module needs PySpark to be imported."""

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
from callboard.spark.source.source_options import RemoteEntry
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
def published(place: RemoteEntry) -> Iterator[list[PublishedRows]]:
    """Lend the published rows of an entry point, by server, over connections of one's own."""
    connection = place.connect()
    servers = connection.shards if isinstance(connection, ShardedConnection) else [connection]
    try:
        yield [server.published(place.entry) for server in servers]
    finally:
        connection.close()


def divided(start: int, end: int, parts: int, shard: int = 0) -> list[RowRange]:
    """Divide a range into parts of the same size but for a row, none of which is empty."""
    rows = end - start
    parts = min(parts, rows)
    bounds = [start + rows * part // parts for part in range(parts + 1)] if parts else []
    return [RowRange(bounds[at], bounds[at + 1], shard) for at in range(parts)]


@reported
def read(
    place: RemoteEntry, wanted: InputPartition, schema: StructType
) -> Iterator[pa.RecordBatch]:
    """In a task: yield the rows of a range, with the Arrow types that Spark has for its schema.

    Raises NotPublished; SchemaError where that would change a value.
    """
    assert isinstance(wanted, RowRange)
    columns = arrow_schema(schema)
    connection = place.connect_to(wanted.shard)
    try:
        for batch in connection.published(place.entry).read(wanted.start, wanted.end):
            yield batch if batch.schema.equals(columns) else _cast(batch, columns)
    finally:
        connection.close()


def _cast(batch: pa.RecordBatch, columns: pa.Schema) -> pa.RecordBatch:
    try:
        cast = batch.cast(columns)
        for was, is_ in zip(batch.schema, columns, strict=True):
            if mixes_clocks(was.type, is_.type):
                raise ValueError(
                    f"in column {was.name!r}, what clocks show is no instant without a zone; a "
                    "time without a zone is a timestamp_ntz, one with a zone a timestamp"
                )
        return cast
    except ValueError as error:  # Arrow's errors are such
        was, is_ = (str(each).replace("\n", ", ") for each in (batch.schema, columns))
        raise SchemaError(f"published rows are {was}, and do not fit {is_}: {error}") from error
