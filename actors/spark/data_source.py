"""The data source `callboard`; this module needs PySpark to be imported."""

from __future__ import annotations

from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, DataSourceWriter
from pyspark.sql.types import StructType

from callboard.core.errors import ConfigError
from callboard.spark.batch_writer import BatchWriter
from callboard.spark.source_options import SourceOptions


class CallboardSource(DataSource):
    """An entry point of a server, as a table to which rows are appended."""

    @classmethod
    def name(cls) -> str:
        """Return what `format()` finds it by."""
        return "callboard"

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return what appends a frame. Raises ConfigError."""
        if overwrite:
            raise ConfigError(
                "mode('overwrite'): what an actor has of its rows cannot be taken back; "
                "use mode('append')"
            )
        options = SourceOptions(self.options)
        return BatchWriter(options.place({"job", "batch"}), options.load())

    def streamWriter(  # noqa: N802 - Spark calls it so
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        """Return what appends the micro-batches of a query. Raises ConfigError."""
        if overwrite:
            raise ConfigError(
                "outputMode('complete'): what an actor has of its rows cannot be taken back; "
                "use outputMode('append')"
            )
        place = SourceOptions(self.options).place()
        try:
            from callboard.spark.stream_writer import StreamWriter
        except ImportError as error:
            raise ConfigError(f"streaming writes want PySpark 4.1: {error}") from None
        return StreamWriter(place)
