"""A task that runs a graph of streams, with rows in and outputs out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from callboard import ActorSystem
from callboard.core.checks import one_of, seconds
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.failures import FailureReport
from callboard.spark.context import PartitionContext
from callboard.spark.frames.frame_rows import batches_of
from callboard.spark.tasks.counters import Counting, TaskCounters, check_counters, counted
from callboard.spark.tasks.feed import check_takes_two
from callboard.spark.tasks.host import GraphSpec, TaskGraph, task_graph
from callboard.spark.tasks.pickling import pickle_for_tasks
from callboard.spark.tasks.reporting import reported
from callboard.spark.tasks.settings import SystemSettings, Workers
from callboard.streams import Graph, Run, Stream, StreamError

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

BuildStream: TypeAlias = Callable[[ActorSystem, PartitionContext], Stream[Any] | Graph[Any]]
Begun: TypeAlias = tuple[Graph[Any], Run[Any]]

# Options of a run; those of ActorSystem.run.
_OPTIONS = (
    *("threading", "placement", "policy"),
    *("batch_size", "window", "time_slice", "markers"),
)
SIDES = ("left", "right")  # the entries of a graph for two frames, or two groups


@dataclass(frozen=True)
class GraphTask:
    """A graph that each task runs. Made on the driver, used in tasks.

    `graph` is a graph, a stream, which gets a collector, or a function that makes one of them in
    the task. `options` are those of `ActorSystem.run`.
    """

    graph: Graph[Any] | Stream[Any] | BuildStream
    entry: str | None
    output: str | None
    options: Mapping[str, Any]
    settings: SystemSettings
    drain_timeout: float
    counters: TaskCounters | None = None

    @reported
    def outputs(
        self,
        rows: Iterable[Any] | None = None,
        *,
        inputs: Any = None,
        wanted: bool = True,
        at_end: Callable[[Run[Any]], None] | None = None,
    ) -> Generator[Any, None, None]:
        """Yield the collector's outputs, while `rows` are read for the entry; for several entries
        `inputs`, as those of `Run.results`. `at_end` is called when the run is finished.

        Without `wanted` there need be no collector. PartitionFailed names the operator, or the
        actor, that raised; an exception of the rows is raised as it is.
        """
        name = self.entry or ("graph" if rows is not None else ", ".join(SIDES))
        with counted(self.counters, name) as counting:
            if counting is None:
                yield from self._outputs(rows, inputs, wanted, at_end, None)
                return
            if rows is not None:
                rows = counting.reading(rows)
            elif isinstance(inputs, Mapping):
                inputs = {side: counting.reading(of_side) for side, of_side in inputs.items()}
            yield from counting.giving(self._outputs(rows, inputs, wanted, at_end, counting))

    def _outputs(
        self,
        rows: Iterable[Any] | None,
        inputs: Any,
        wanted: bool,
        at_end: Callable[[Run[Any]], None] | None,
        counting: Counting | None,
    ) -> Generator[Any, None, None]:
        spec = GraphSpec(self._begin, None, self.settings, self.drain_timeout)
        with task_graph(spec, PartitionContext.current()) as task:
            graph, run = task.built
            if counting is not None:
                counting.watch(task.system)
            with run:
                if rows is not None:
                    inputs = {chosen("entry", graph.entries, self.entry): rows}
                try:
                    if wanted or graph.collectors:
                        name = chosen("output", graph.collectors, self.output)
                        yield from run.results(inputs, name=name)
                    else:
                        for name, of_entry in inputs.items():
                            run.send(name, of_entry)
                        run.finish()
                except StreamError as error:
                    _fail(task, error)
                if at_end is not None:
                    at_end(run)
            task.drain(self.drain_timeout)

    @reported
    def batches(
        self, schema: StructType | None, rows: Iterable[Any] | None = None, **options: Any
    ) -> Iterator[pa.RecordBatch]:
        """Yield the outputs as record batches; `options` are those of `outputs`."""
        # A batch that does not fit ends the run at once, not when its error is garbage.
        with closing(self.outputs(rows, **options)) as outputs:
            yield from batches_of(outputs, schema)

    def _begin(self, system: ActorSystem, context: PartitionContext) -> Begun:
        graph = graph_of(self.graph(system, context) if callable(self.graph) else self.graph)
        return graph, system.run(graph, **self.options)


def graph_task(
    graph: Graph[Any] | Stream[Any] | BuildStream,
    entry: str | None = None,
    output: str | None = None,
    *,
    workers: Workers | None = None,
    drain_timeout: float = 300.0,
    config: Any = None,
    counters: TaskCounters | None = None,
    **options: Any,
) -> GraphTask:
    """Make a task, on the driver: `spark_graph` describes it. Raises ConfigError, CaptureError."""
    if callable(graph):
        check_takes_two(graph)
    else:
        graph_of(graph)
    timeout = seconds("drain_timeout", drain_timeout, zero=False, error=ConfigError)
    for option in options:
        one_of("an option of a run", option, _OPTIONS, error=ConfigError)
    settings = SystemSettings.read(config, workers)
    pickle_for_tasks("stream" if isinstance(graph, Stream) else "graph", graph, keep=False)
    pickle_for_tasks("options", options, keep=False)
    of_run = {"threading": "manual", **options}
    counters = check_counters(counters)
    return GraphTask(graph, entry, output, of_run, settings, timeout, counters)


def graph_of(graph: Any) -> Graph[Any]:
    """Return a graph, or that of a stream, which then ends in a collector. Raises ConfigError."""
    if isinstance(graph, Stream):
        return graph.collect()
    if not isinstance(graph, Graph):
        raise ConfigError(f"expected a graph or a stream to run in tasks, got {safe_repr(graph)}")
    return graph


def chosen(option: str, names: Sequence[str], name: str | None) -> str:
    """Return a graph's only entry or collector, or the one that an option names."""
    kinds = {"entry": "entries", "output": "collectors"}[option]
    has = ", ".join(map(repr, names))
    if not names:
        raise ConfigError(
            f"the graph has no {kinds}, which all functions but foreach_partition need"
        )
    if name is None and len(names) > 1:
        raise ConfigError(f"the graph has the {kinds} {has}: choose one by {option}=")
    if name is not None and name not in names:
        raise ConfigError(
            f"{option} must be one of the graph's {kinds} {has}, got {safe_repr(name)}"
        )
    return names[0] if name is None else name


def _fail(task: TaskGraph[Begun], error: StreamError) -> None:
    task.check()  # an actor behind a sink may be the cause
    who = f"operator {error.operator!r}"
    where = str(error).removeprefix(f"{who} failed")
    task.fail(who, FailureReport.of(error.__cause__ or error), where)
