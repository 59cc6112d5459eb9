"""Registers the data source `callboard` in a session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from callboard.spark.errors import without_pyspark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register `format("callboard")`, which writes to servers and reads from them, in a session.

    Once per session is enough; a second call changes nothing. Raises ModuleNotFoundError without
    PySpark.
    """
    try:
        from callboard.spark.source.data_source import CallboardSource
    except ImportError as error:
        raise without_pyspark(error) from error

    spark.dataSource.register(CallboardSource)
