"""A task on a partition of two frames' rows: they go to a stream's two entries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.rows.instants import instant_of
from callboard.spark.errors import OrderError
from callboard.spark.frames.frame_rows import pieces
from callboard.spark.tasks.graph_task import SIDES, GraphTask, graph_task
from callboard.streams import Run, Stream, Watermark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


def join_partition(
    stream: Stream[Any], order: str, schema: StructType
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for `mapInArrow`, of a frame as `co_partitioned` makes it.

    Raises ConfigError for a stream that has other entries than the two sides.
    """
    if not isinstance(stream, Stream):
        raise ConfigError(f"stream is a stream that ends in no sink, not {safe_repr(stream)}")
    entries = stream.collect().entries
    if {*entries} != {*SIDES}:
        raise ConfigError(f"the entries of stream are 'left' and 'right', not {list(entries)}")
    return partial(_join, graph_task(stream), order, schema)


def _join(
    task: GraphTask, order: str, schema: StructType, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    inputs, at_end = _by_sides(batches, order), partial(_refuse_late, order)
    return task.batches(schema, inputs=inputs, at_end=at_end)


def _by_sides(
    batches: Iterable[pa.RecordBatch], order: str
) -> Iterator[tuple[str, list[dict[str, Any] | Watermark]]]:
    """Give rows to each side, and tell both how far the partition has come."""
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
    if lates := dict(run.tally.lates):
        raise OrderError(
            f"rows were late: {lates}. Times in a stream of frames are those of {order!r}"
        )
