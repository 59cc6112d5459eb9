"""Batch reads; this module needs PySpark to be imported."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from callboard.spark.source import published_range
from callboard.spark.source.published_range import RowRange, divided, published
from callboard.spark.source.source_options import RemoteEntry

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
