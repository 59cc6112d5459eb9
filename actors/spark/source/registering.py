"""The data source `callboard`, made known to a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.spark.errors import without_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Let a session know `format("callboard")`, which writes to a server, and reads from it.

    Once for a session is enough; a second call changes nothing. Raises ModuleNotFoundError without
    PySpark.
    """
    try:
        from callboard.spark.source.data_source import CallboardSource
    except ImportError as error:
        raise without_pyspark(error) from error

    spark.dataSource.register(CallboardSource)
