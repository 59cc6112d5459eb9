"""The data source `callboard`, with its batch reads and writes; this module needs PySpark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from callboard.core.errors import ConfigError
from callboard.remote.protocol.requests import BatchName
from callboard.spark.source import published_range, sink
from callboard.spark.source.published_range import RowRange, divided, published
from callboard.spark.source.remote_entry import RemoteEntry, refuse_without_columns
from callboard.spark.source.source_options import BY, SourceOptions
from callboard.spark.source.stream_reader import StreamReader

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(DataSourceReader):
    """Reads the rows that are published and not released when Spark plans the job."""

    def __init__(self, remote: RemoteEntry, schema: StructType, parts: int) -> None:
        self._remote = remote
        self._schema = schema
        self._parts = parts

    def partitions(self) -> list[RowRange]:
        """Divide the rows into ranges; called by Spark, once for a plan."""
        with published(self._remote) as servers:
            ranges = [
                part
                for shard, rows in enumerate(servers)
                for part in divided(rows.earliest(), rows.latest(), self._parts, shard)
            ]
        return ranges or [RowRange(0, 0)]  # Spark needs one

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a partition; called by Spark, in each task."""
        return published_range.read(self._remote, partition, self._schema)


class BatchWriter(DataSourceArrowWriter):
    """Writes a frame as one batch of a job, which is the named one, or a new one.

    Spark pickles it, after `__init__`, for the tasks, and for the commit or abort.
    """

    def __init__(self, remote: RemoteEntry, name: BatchName | None) -> None:
        self._remote = remote
        self._name = name or BatchName(str(uuid4()), 0)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Upload a partition; called by Spark, in each task."""
        return sink.upload(self._remote, self._name, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the attempts that Spark took; called by Spark, on the driver."""
        sink.commit(self._remote, self._name, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Drop the staged rows; called by Spark, on the driver, also if the commit raised."""
        sink.abort(self._remote, self._name)


_READ, _STREAM = {"partitions"}, {"release"}  # options
_MOST = 10_000  # partitions: each is a task, and a connection


class CallboardSource(DataSource):
    """An entry point of a server or of shards: rows are appended, published rows are read."""

    @classmethod
    def name(cls) -> str:
        """Return the name for `format()`."""
        return "callboard"

    def schema(self) -> StructType:
        """Ask the server, or the first, for the columns of the rows to read.

        Raises ConfigError, NotPublished.
        """
        with published(SourceOptions(self.options).remote_entry(_READ | _STREAM)) as servers:
            # Otherwise PySpark before 4.1 would read a time without a zone as one with a zone.
            schema = from_arrow_schema(servers[0].schema(), prefer_timestamp_ntz=True)
        assert isinstance(schema, StructType)
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the published rows. Raises ConfigError."""
        options = SourceOptions(self.options)
        return BatchReader(options.remote_entry(_READ), schema, _parts(options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of rows as they are published. Raises ConfigError."""
        options = SourceOptions(self.options)
        remote = options.remote_entry(_READ | _STREAM)
        return StreamReader(remote, schema, _parts(options), options.switch("release", True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer that appends a frame. Raises ConfigError."""
        if overwrite:
            raise ConfigError(
                "mode('overwrite'): rows that an actor has received cannot be undone; "
                "use mode('append')"
            )
        options = SourceOptions(self.options)
        remote, name = options.remote_entry({"job", "batch"} | BY), options.batch_name()
        refuse_without_columns(schema.names)
        return BatchWriter(remote, name)

    def streamWriter(  # noqa: N802 - Spark calls it so
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return the writer that appends the micro-batches of a query. Raises ConfigError."""
        if overwrite:
            raise ConfigError(
                "outputMode('complete'): rows that an actor has received cannot be undone; "
                "use outputMode('append')"
            )
        remote = SourceOptions(self.options).remote_entry(BY)
        refuse_without_columns(schema.names)
        try:
            from callboard.spark.source.stream_writer import StreamWriter
        except ImportError as error:
            raise ConfigError(f"streaming writes need PySpark 4.1: {error}") from None
        return StreamWriter(remote)


def _parts(options: SourceOptions) -> int:
    return options.whole("partitions", 1, 1, _MOST)
