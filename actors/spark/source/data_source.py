"""The data source `callboard`; this module needs PySpark to be imported."""

from __future__ import annotations

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from callboard.core.errors import ConfigError
from callboard.spark.source.batch_reader import BatchReader
from callboard.spark.source.batch_writer import BatchWriter
from callboard.spark.source.published_range import published
from callboard.spark.source.source_options import BY, SourceOptions
from callboard.spark.source.stream_reader import StreamReader
from callboard.spark.source.upload_task import refuse_without_columns

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
