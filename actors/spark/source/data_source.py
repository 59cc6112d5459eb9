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
from callboard.remote.protocol.staged_rows import BatchName
from callboard.spark.source import published_range, sink
from callboard.spark.source.published_range import RowRange, divided, published
from callboard.spark.source.source_options import BY, RemoteEntry, SourceOptions
from callboard.spark.source.stream_reader import StreamReader
from callboard.spark.source.upload_task import refuse_without_columns

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(DataSourceReader):
    """Reads the rows that are published and not released when Spark plans the job."""

    def __init__(self, place: RemoteEntry, schema: StructType, parts: int) -> None:
        self._place = place
        self._schema = schema
        self._parts = parts

    def partitions(self) -> list[RowRange]:
        """Say which rows there are; called by Spark, once for a plan."""
        with published(self._place) as servers:
            ranges = [
                part
                for shard, rows in enumerate(servers)
                for part in divided(rows.earliest(), rows.latest(), self._parts, shard)
            ]
        return ranges or [RowRange(0, 0)]  # Spark wants one

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a partition; called by Spark, in each task."""
        return published_range.read(self._place, partition, self._schema)


class BatchWriter(DataSourceArrowWriter):
    """Writes a frame as one batch of a job: the named one, or one of a name that is new.

    Spark pickles it, after `__init__`, into the tasks, and to where it commits or aborts.
    """

    def __init__(self, place: RemoteEntry, name: BatchName | None) -> None:
        self._place = place
        self._name = name or BatchName(str(uuid4()), 0)

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Upload a partition; called by Spark, in each task."""
        return sink.upload(self._place, self._name, iterator)

    def commit(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Commit the attempts that Spark took; called by Spark, on the driver."""
        sink.commit(self._place, self._name, messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None]) -> None:
        """Drop the staged rows; called by Spark, on the driver, also if the commit raised."""
        sink.abort(self._place, self._name)


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
        with published(SourceOptions(self.options).place(_READ | _STREAM)) as servers:
            # Before PySpark 4.1 a time without a zone would be one with a zone else.
            schema = from_arrow_schema(servers[0].schema(), prefer_timestamp_ntz=True)
        assert isinstance(schema, StructType)
        return schema

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of the rows that are there. Raises ConfigError."""
        options = SourceOptions(self.options)
        return BatchReader(options.place(_READ), schema, _parts(options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        """Return the reader of rows as they are published. Raises ConfigError."""
        options = SourceOptions(self.options)
        place = options.place(_READ | _STREAM)
        return StreamReader(place, schema, _parts(options), options.switch("release", True))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return the writer that appends a frame. Raises ConfigError."""
        if overwrite:
            raise ConfigError(
                "mode('overwrite'): what an actor has of its rows cannot be taken back; "
                "use mode('append')"
            )
        options = SourceOptions(self.options)
        place, load = options.place({"job", "batch"} | BY), options.load()
        refuse_without_columns(schema.names)
        return BatchWriter(place, load)

    def streamWriter(  # noqa: N802 - Spark calls it so
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return the writer that appends the micro-batches of a query. Raises ConfigError."""
        if overwrite:
            raise ConfigError(
                "outputMode('complete'): what an actor has of its rows cannot be taken back; "
                "use outputMode('append')"
            )
        place = SourceOptions(self.options).place(BY)
        refuse_without_columns(schema.names)
        try:
            from callboard.spark.source.stream_writer import StreamWriter
        except ImportError as error:
            raise ConfigError(f"streaming writes want PySpark 4.1: {error}") from None
        return StreamWriter(place)


def _parts(options: SourceOptions) -> int:
    return options.whole("partitions", 1, 1, _MOST)
