"""Joins two frames by a stream: all rows of a key are in one partition, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.rows.instants import instant_of
from callboard.spark.errors import OrderError
from callboard.spark.frames.by_key import check_frame, in_order, names_of
from callboard.spark.frames.frame_rows import pieces
from callboard.spark.frames.schema import parsed
from callboard.spark.tasks.graph_task import SIDES, GraphTask, graph_task
from callboard.streams import Run, Stream, Watermark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructType


def join_frames(
    left: DataFrame,
    right: DataFrame,
    stream: Stream[Any],
    *,
    key: str | Sequence[str],
    order: str,
    partitions: int,
    schema: StructType | str,
) -> DataFrame:
    """Return a frame of a stream's outputs for the rows of two frames, partition by partition.

    Spark collects the rows of each key in one partition, and sorts each partition by `order`. The
    stream runs in the task's own thread. Its entries get the rows as dictionaries, and watermarks
    whose times are values of `order`: give the join `by=order`. A partition has rows of many keys,
    so the stream must also compare keys, as with `Equal(key)`.

    A partition's outputs have the stream's order, which is the same when a task is run again. There
    is no order between partitions. A task holds the stream's state in memory, such as a join's
    windows, and its outputs for a few thousand rows.

    Args:
        left: The frame of the entry "left".
        right: The frame of the entry "right".
        stream: A stream with these two entries and no sink, usually a `join()`.
        key: The name of a column of both frames, or several names.
        order: The name of a column of both frames to sort by.
        partitions: The number of partitions.
        schema: The schema of the outputs, which are tuples or dictionaries.

    Raises:
        ConfigError: A column is missing or has two types, or the stream has other entries.
        CaptureError: The stream cannot be pickled.

    Spark raises an error for columns that it cannot sort by, such as maps. In the task,
    PartitionFailed names the row at which the stream raised; OrderError the row whose `order` is
    null, or the number of late rows; SchemaError an output that does not fit `schema`.
    """
    keys = names_of("key", key)
    check_columns(left, right, [*keys, order])
    both = co_partitioned(left, right, keys, order, partitions)
    wanted = parsed(schema)
    return both.mapInArrow(join_partition(stream, order, wanted), wanted)


def check_columns(left: DataFrame, right: DataFrame, names: Sequence[str]) -> None:
    """Raise ConfigError unless both frames have these columns, once and with the same types."""
    for side, frame in zip(SIDES, (left, right), strict=True):
        check_frame(side, f"the {side} frame", frame, names)
    for name in names:
        types = [frame.schema[name].dataType.simpleString() for frame in (left, right)]
        if types[0] != types[1]:
            raise ConfigError(
                f"column {name!r} is {types[0]} in the left frame and {types[1]} in the right one: "
                "cast one of them"
            )


def co_partitioned(
    left: DataFrame, right: DataFrame, keys: Sequence[str], order: str, partitions: int
) -> DataFrame:
    """Return the rows of both frames, as structs in a column for each side; the other is null."""
    from pyspark.sql.functions import coalesce, col, struct

    def either(name: str) -> Column:
        return coalesce(*(col(side)[name] for side in SIDES))

    lefts, rights = (
        frame.select(struct("*").alias(side))
        for side, frame in zip(SIDES, (left, right), strict=True)
    )
    both = lefts.unionByName(rights, allowMissingColumns=True)
    # Rows of one time are sorted by all columns: see by_key().
    return in_order(both, partitions, map(either, keys), [either(order), *map(col, SIDES)])


def join_partition(
    stream: Stream[Any], order: str, schema: StructType
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for `mapInArrow`, of a frame as `co_partitioned` makes it.

    Raises ConfigError for a stream that has other entries than the two sides.
    """
    if not isinstance(stream, Stream):
        raise ConfigError(f"stream expects a stream without a sink, got {safe_repr(stream)}")
    entries = stream.collect().entries
    if {*entries} != {*SIDES}:
        raise ConfigError(f"stream must have the entries 'left' and 'right', got {list(entries)}")
    return partial(_join, graph_task(stream), order, schema)


def _join(
    task: GraphTask, order: str, schema: StructType, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    inputs, at_end = _by_sides(batches, order), partial(_refuse_late, order)
    return task.batches(schema, inputs=inputs, at_end=at_end)


def _by_sides(
    batches: Iterable[pa.RecordBatch], order: str
) -> Iterator[tuple[str, list[dict[str, Any] | Watermark]]]:
    """Yield rows for each side, and watermarks for both."""
    for piece in pieces(batches):
        sides = {side: piece.column(side).drop_null().to_pylist() for side in SIDES}
        for side, rows in sides.items():
            if rows and rows[0][order] is None:  # nulls are sorted first
                raise OrderError(
                    f"{order!r} is null in a row of the {side} frame: {safe_repr(rows[0])}"
                )
        latest = max((rows[-1][order] for rows in sides.values() if rows), key=instant_of)
        come_to = Watermark(latest)
        for side, rows in sides.items():
            yield side, [*rows, come_to]


def _refuse_late(order: str, run: Run[Any]) -> None:
    if lates := dict(run.row_counts.lates):
        raise OrderError(
            f"rows were late: {lates}. Times in a stream of frames are those of {order!r}"
        )
