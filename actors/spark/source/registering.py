"""The data source `callboard`, made known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Let a session know `format("callboard")`, which writes to a server, and reads from it.

    Once for a session is enough; a second call changes nothing.
    """
    from callboard.spark.source.data_source import CallboardSource

    spark.dataSource.register(CallboardSource)
