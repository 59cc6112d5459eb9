"""Functions for Spark's methods that run a graph of streams in each task."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from callboard.core.checks import one_of
from callboard.core.errors import ConfigError
from callboard.core.handles import public_names
from callboard.spark.frames.frame_rows import dicts_of, tuples_of
from callboard.spark.frames.schema import parsed
from callboard.spark.tasks.counters import TaskCounters
from callboard.spark.tasks.graph_task import (
    SIDES,
    BuildStream,
    GraphTask,
    chosen,
    graph_of,
    graph_task,
)
from callboard.spark.tasks.settings import Workers
from callboard.streams import Graph, Stream

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

_ROWS: dict[str, Callable[[Any], Iterable[Any]]] = {
    "batch": iter,
    "dict": dicts_of,
    "tuple": tuples_of,
}


def spark_graph(
    graph: Graph[Any] | Stream[Any] | BuildStream,
    *,
    entry: str | None = None,
    output: str | None = None,
    rows: Literal["batch", "dict", "tuple"] = "batch",
    schema: StructType | str | None = None,
    workers: Workers | None = None,
    drain_timeout: float = 300.0,
    config: Any = None,
    counters: TaskCounters | None = None,
    **options: Any,
) -> SparkGraph:
    """Return functions for Spark's methods that run a graph of streams in each task.

    By default a graph runs in the task's own thread, by `threading="manual"`, and takes one record
    batch, or 512 rows, at a time.

    Args:
        graph: A stream, whose outputs are the results; a `Graph`; or a function of an actor system
            and a PartitionContext that makes one of these in the task. If a sink is an actor's ref,
            it must be a function.
        entry: The name of the entry, if there are several.
        output: The name of the collector, if there are several.
        rows: The entry gets whole record batches, or their rows as dictionaries or tuples.
        schema: The schema of the outputs, against which they are checked; they may be rows,
            dictionaries or tuples. Without it, outputs are record batches or tables. A string
            requires an active session.
        workers: See `callboard.spark.tasks.feed.PartitionOptions`.
        drain_timeout: See there.
        config: See there.
        counters: See there.
        **options: Options of `ActorSystem.run`.

    Raises:
        ConfigError: An option is invalid.
        CaptureError: The graph cannot be pickled.

    In the task, PartitionFailed names the operator and the row at which it raised, and SchemaError
    describes an output that does not fit.
    """
    one_of("rows", rows, tuple(_ROWS), error=ConfigError)
    task = graph_task(
        graph,
        entry,
        output,
        workers=workers,
        drain_timeout=drain_timeout,
        config=config,
        counters=counters,
        **options,
    )
    return SparkGraph(task, rows, None if schema is None else parsed(schema))


class SparkGraph:
    """Functions that run a graph in each task. Made by `spark_graph()`.

    Each is for Spark's method of the same name, and raises ConfigError for an unsuitable graph. In
    a task, outputs are produced while rows are read, in the order of a run with one worker. Each
    partition, or group, has its own run and state; there is no order between them. When the reader
    stops, the run is cancelled. Results that Spark returns count once; effects of operators happen
    at least once.
    """

    __dir__ = public_names

    def __init__(self, task: GraphTask, rows: str, schema: StructType | None) -> None:
        self._task = task
        self._rows = rows
        self._schema = schema

    @property
    def foreach_partition(self) -> Callable[[Iterable[Any]], None]:
        """For `rdd.foreachPartition` and `DataFrame.foreachPartition`: rows in, and no outputs.

        Use it for graphs with sinks. Outputs of a collector are dropped.
        """
        return partial(_for_each, self._checked(output=False))

    @property
    def map_partitions(self) -> Callable[[Iterable[Any]], Iterator[Any]]:
        """For `rdd.mapPartitions`: rows in, and outputs as they are."""
        return self._checked().outputs

    @property
    def map_in_arrow(self) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
        """For `DataFrame.mapInArrow`."""
        return partial(_map_in_arrow, self._checked(), self._rows, self._schema)

    @property
    def apply_in_arrow(self) -> Callable[[pa.Table], pa.Table]:
        """For `groupBy(...).applyInArrow`: a run for each group, with all its rows."""
        function = partial(_apply_in_arrow, self._checked(), self._rows, self._schema)
        # Spark counts the parameters, and needs the types of all if one has a type.
        return lambda table: function(table)

    @property
    def cogroup_in_arrow(self) -> Callable[[pa.Table, pa.Table], pa.Table]:
        """For `groupBy(...).cogroup(...).applyInArrow`, by a graph with entries "left" and "right".

        All rows of both groups are sent, in batches by turns. A side without rows for the key is
        sent as an empty batch with its columns.
        """
        task = self._checked(entries=SIDES)
        function = partial(_cogroup_in_arrow, task, self._rows, self._schema)
        return lambda left, right: function(left, right)

    def _checked(self, *, output: bool = True, entries: tuple[str, ...] = ()) -> GraphTask:
        """Return the task if its graph has the needed parts, as far as they are known here."""
        task = self._task
        if not callable(task.graph):
            graph = graph_of(task.graph)
            if output or graph.collectors:
                chosen("output", graph.collectors, task.output)
            if not entries:
                chosen("entry", graph.entries, task.entry)
            elif {*graph.entries} != {*entries}:
                raise ConfigError(f"a cogroup needs the entries {entries}, got {graph.entries}")
        return task


def _for_each(task: GraphTask, rows: Iterable[Any]) -> None:
    for _ in task.outputs(rows, wanted=False):
        pass


def _map_in_arrow(
    task: GraphTask, rows: str, schema: StructType | None, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    return _one_by_one(task, rows).batches(schema, _ROWS[rows](batches))


def _apply_in_arrow(
    task: GraphTask, rows: str, schema: StructType | None, table: pa.Table
) -> pa.Table:
    return _table(_map_in_arrow(task, rows, schema, table.to_batches()))


def _cogroup_in_arrow(
    task: GraphTask, rows: str, schema: StructType | None, left: pa.Table, right: pa.Table
) -> pa.Table:
    tables = zip(SIDES, (left, right), strict=True)
    inputs = {side: _ROWS[rows](_batches(table)) for side, table in tables}
    return _table(_one_by_one(task, rows).batches(schema, inputs=inputs))


def _batches(table: pa.Table) -> list[pa.RecordBatch]:
    """Return a table's batches; an empty one has a batch without rows, for its columns."""
    import pyarrow as pa

    return table.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]


def _one_by_one(task: GraphTask, rows: str) -> GraphTask:
    """Have a run take one row at a time if rows are batches."""
    if rows != "batch":
        return task
    return replace(task, options={"batch_size": 1, **task.options})


def _table(batches: Iterable[pa.RecordBatch]) -> pa.Table:
    import pyarrow as pa

    found = [*batches]
    return pa.Table.from_batches(found) if found else pa.table({})  # which Spark takes for no rows
