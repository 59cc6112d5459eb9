"""Streaming writes; importing this module needs PySpark 4.1."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceStreamArrowWriter, WriterCommitMessage
from pyspark.taskcontext import TaskContext

from callboard.remote.protocol.requests import BatchName
from callboard.spark.source import sink
from callboard.spark.source.remote_entry import RemoteEntry

if TYPE_CHECKING:
    import pyarrow as pa


class StreamWriter(DataSourceStreamArrowWriter):
    """Writes each micro-batch as one batch of a job, whose name is the query's id.

    Only tasks know that id, so their messages have it.
    """

    def __init__(self, remote: RemoteEntry) -> None:
        self._remote = remote

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Upload a partition; called by Spark, in each task."""
        task = TaskContext.get()
        assert task is not None
        query = task.getLocalProperty("sql.streaming.queryId")
        batch = task.getLocalProperty("streaming.sql.batchId")
        assert query is not None
        assert batch is not None
        return sink.upload(self._remote, BatchName(query, int(batch)), iterator)

    # Spark calls them by position, under these names.

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Commit the attempts that Spark took; called by Spark, on the driver."""
        if (job := _job_of(messages)) is not None:
            sink.commit(self._remote, BatchName(job, batchId), messages)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Drop the staged rows; called by Spark, on the driver. Tasks may begin even after it."""
        if (job := _job_of(messages)) is not None:
            sink.abort(self._remote, BatchName(job, batchId))


def _job_of(messages: Sequence[WriterCommitMessage | None]) -> str | None:
    """Return the job of the tasks' staged rows; None if no task has any."""
    return next((each.job for each in messages if isinstance(each, sink.Staged)), None)
