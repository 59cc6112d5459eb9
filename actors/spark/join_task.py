"""What a task does with a partition of two frames' rows: a run of a stream, in an actor."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from callboard import Actor, ActorRef, ActorSystem
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.spark.context import PartitionContext, PartitionEnd
from callboard.spark.errors import SchemaError
from callboard.spark.partitions import map_in_arrow
from callboard.streams import Run, Stream, Watermark

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

SIDES = ("left", "right")
_ROWS = 1024  # that an actor gets at once, and of outputs that are a record batch


def join_partition(
    stream: Stream[Any], order: str, schema: pa.Schema, wanted: StructType | None = None
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return a function for `mapInArrow`, of a frame as `co_partitioned` makes it.

    Raises ConfigError for a stream that has other entries than the two sides.
    """
    if not isinstance(stream, Stream):
        raise ConfigError(f"stream is a stream that ends in no sink, not {safe_repr(stream)}")
    entries = stream.collect().entries
    if {*entries} != {*SIDES}:
        raise ConfigError(f"the entries of stream are 'left' and 'right', not {list(entries)}")
    build = partial(_build, stream=stream, order=order, schema=schema)
    return partial(_in_pieces, map_in_arrow(build, flush=True, schema=wanted))


def _in_pieces(
    function: Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]],
    batches: Iterable[pa.RecordBatch],
) -> Iterator[pa.RecordBatch]:
    return function(
        batch.slice(at, _ROWS) for batch in batches for at in range(0, batch.num_rows, _ROWS)
    )


def _build(
    system: ActorSystem,
    context: PartitionContext,
    *,
    stream: Stream[Any],
    order: str,
    schema: pa.Schema,
) -> ActorRef[Any]:
    given: list[pa.RecordBatch] = []
    rows = stream.map(partial(_row, schema.names)).batch(_ROWS)
    graph = rows.map(partial(_record_batch, schema)).to(given.append)
    run = system.run(graph, threading="manual")  # what comes of rows is there when send() returns
    return system.spawn(FrameJoin, run, order, given, name="join")


def _row(names: list[str], output: Any) -> tuple[Any, ...]:
    if isinstance(output, tuple) and len(output) == len(names):
        return output
    if isinstance(output, dict) and output.keys() == {*names}:
        return tuple([output[name] for name in names])
    raise SchemaError(
        f"an output is a dictionary or a tuple with the columns {names}, not {safe_repr(output)}"
    )


def _record_batch(schema: pa.Schema, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    import pyarrow as pa

    columns = []
    for field, values in zip(schema, zip(*rows, strict=True), strict=True):
        try:
            columns.append(pa.array(values, field.type))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise SchemaError(
                f"an output does not fit column {field.name!r}, which is {field.type}: {error}"
            ) from error
    return pa.RecordBatch.from_arrays(columns, schema=schema)


class FrameJoin(Actor[Any]):
    """Sends the rows of a partition into a run, and answers with what has come out of it."""

    def __init__(self, run: Run[None], order: str, given: list[pa.RecordBatch]) -> None:
        self._run = run
        self._order = order
        self._given = given

    def receive(self, message: Any) -> list[pa.RecordBatch]:
        """Take a batch of both frames' rows, or the end of the partition."""
        if isinstance(message, PartitionEnd):
            self._finish()
        else:
            self._send(message)
        taken = self._given[:]
        del self._given[: len(taken)]  # others may have come: parts of a stream can have threads
        return taken

    def on_stop(self) -> None:
        """End a run whose partition was not read to its end."""
        self._run.cancel()

    def _send(self, batch: pa.RecordBatch) -> None:
        """Send rows to both entries, and tell both how far the partition has come."""
        sides = {side: batch.column(side).drop_null().to_pylist() for side in SIDES}
        for side, rows in sides.items():
            if rows and rows[0][self._order] is None:  # nulls are sorted first
                raise ValueError(
                    f"{self._order!r} is null in a row of the {side} frame: {safe_repr(rows[0])}"
                )
        come_to = Watermark(max(rows[-1][self._order] for rows in sides.values() if rows))
        for side, rows in sides.items():
            self._run.send(side, [*rows, come_to])

    def _finish(self) -> None:
        self._run.finish()
        late = dict(self._run.tally.lates)
        if late:
            raise ValueError(
                f"rows were late: {late}. Times in a stream of frames are those of {self._order!r}"
            )
