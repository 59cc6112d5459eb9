"""Batch writes; this module needs PySpark to be imported."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING
from uuid import uuid4

from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from callboard.remote.protocol.staged_rows import BatchName
from callboard.spark.source import sink
from callboard.spark.source.source_options import RemoteEntry

if TYPE_CHECKING:
    import pyarrow as pa


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
