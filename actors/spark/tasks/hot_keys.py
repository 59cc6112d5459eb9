"""Counts the frequent keys of a frame, in its partitions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from callboard.frequency import SpaceSaving
from callboard.spark.tasks.reporting import reported

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame


def hot_keys(frame: DataFrame, key: str | Column, *, epsilon: float = 1e-4) -> SpaceSaving:
    """Count the keys of a frame's column in one job, and return their summary.

    As in SQL aggregates, nulls are left out. Each task counts its partition with at most `1 /
    epsilon` counters and returns them; they are merged on the driver. The bounds of
    `SpaceSaving.merge` hold: with N keys in all, every key that occurred more than `epsilon` N
    times is included, and no count exceeds the true one by more than that.

    Args:
        frame: The frame.
        key: A column's name, or an expression, of integers, strings or bytes.
        epsilon: From 1e-9 to below 1, as in `SpaceSaving`.

    Raises:
        ValueError: `epsilon` is out of range.
        TypeError: The keys have another type.
    """
    merged = SpaceSaving(epsilon)
    keys = frame.select(key)
    _check_type(keys)
    parts = keys.dropna().mapInArrow(partial(_count, epsilon=epsilon), "summary binary")
    for part in parts.collect():
        merged.merge(SpaceSaving.from_bytes(bytes(part.summary)))
    return merged


def _check_type(keys: DataFrame) -> None:
    from pyspark.sql import types

    (column,) = keys.schema.fields
    countable = (
        types.IntegralType,
        types.StringType,
        types.CharType,
        types.VarcharType,
        types.BinaryType,
        types.NullType,
    )
    if not isinstance(column.dataType, countable):
        raise TypeError(
            f"expected keys of integers, strings or bytes, got the column {column.name!r} of "
            f"{column.dataType.simpleString()}"
        )


@reported
def _count(batches: Iterable[pa.RecordBatch], *, epsilon: float) -> Iterator[pa.RecordBatch]:
    import pyarrow

    counted = SpaceSaving(epsilon)
    for batch in batches:
        counted.update(batch.column(0))
    yield pyarrow.record_batch({"summary": [counted.to_bytes()]})
