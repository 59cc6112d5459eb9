"""Graphs of operators, ready to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, TypeVar, overload

from callboard.core.handles import public_names
from callboard.core.text import safe_repr
from callboard.scheduling.flow.threading_models import Model
from callboard.streams.checks import MOST, check_count
from callboard.streams.drawing import describe, mermaid, svg
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import Operator, Outlet
from callboard.streams.planning.pipelines import Pipeline, pipelines_of
from callboard.streams.planning.plan import Plan, check_model
from callboard.streams.planning.planner import plan_of
from callboard.streams.running import sequential
from callboard.streams.running.row_counts import RowCounts
from callboard.streams.running.run import Run
from callboard.system import ActorSystem

R = TypeVar("R")


class Graph(Generic[R]):
    """Streams from their entries to their sinks, checked and ready to run any number of times.

    A sink, such as `collect()`, makes a graph of the stream that it ends. `Graph(a, b)` combines
    several; streams that they share occur in it once.

    `system.run(graph)` starts it, and returns its Run. The options are:

    - `threading`: the model of operators without `stream.run_on()`. The default is the
      configuration's, else `dynamic`. Results, order and errors are the same in each.

      - `dynamic`: any worker runs any operator; a stateful one runs on one worker at a time.
      - `manual`: the thread that calls `send()` and `finish()`, which must always be the same
        thread or actor, runs all operators. After `stream.new_thread()` another thread takes over.
      - `dedicated`: each operator has its own thread.
      - `assigned`: each operator stays on a worker, chosen by `placement`, until `run.rebalance()`
        moves it.
    - `placement`: the policy, or the name of one, that assigns operators: see `spawn`. The default
      is the configuration's, else `round_robin`.
    - `policy`: the heuristic that chooses among `dynamic` operators. The default is the
      configuration's, else `last_in_pipeline`.
    - `batch_size`: the most rows that go through the graph together. The default is 512, and less
      for an operator that takes more than 4 µs for a row, so that a batch takes it 2 ms. Smaller
      batches have a lower latency, larger ones a lower cost.
    - `window`: the most batches in flight, a power of two. It bounds memory.
    - `time_slice`: how long a worker stays with an operator, in seconds.
    - `markers`: one in this number of batches has its latency measured; 0 measures none.
    - `hot_keys`: how many of the most frequent keys the statistics of keyed Python operators
      include.
    - `restore`: the `Snapshot` to continue from, the path of one, or `SnapshotStore`, a directory
      of snapshots.

    The call raises ConfigError for invalid values, and SnapshotError for a snapshot that is broken,
    or of another graph.

    Raises:
        GraphError: Two entries, or two operators with given names, have the same name.
    """

    __dir__ = public_names

    @overload
    def __init__(self, part: Graph[R], /) -> None: ...
    @overload
    def __init__(self: Graph[dict[str, list[Any]]], *parts: Graph[Any]) -> None: ...
    def __init__(self, *parts: Graph[Any]) -> None:
        sinks: dict[Operator, None] = {}
        for part in parts:
            if not isinstance(part, Graph):
                what = safe_repr(part)
                raise GraphError(f"expected graphs, each with its sinks, got {what}")
            sinks.update(dict.fromkeys(part._sinks))
        if not sinks:
            raise GraphError("a graph must have a sink")
        self._build(tuple(sinks))

    @classmethod
    def _of(cls, sink: Operator) -> Graph[Any]:
        graph = cls.__new__(cls)
        graph._build((sink,))
        return graph

    def _build(self, sinks: tuple[Operator, ...]) -> None:
        self._sinks = sinks
        self._operators = _upstream(sinks)
        self._names = _names(self._operators)
        self._plan = plan_of(self._operators, self._names)

    # --- what it is made of -----------------------------------------------------------------------

    @property
    def entries(self) -> tuple[str, ...]:
        """The names of the graph's entries."""
        return self._plan.entries

    @property
    def collectors(self) -> tuple[str, ...]:
        """The names of the graph's collectors."""
        return tuple(self._names[each] for each in self._operators if each.kind == "collect")

    # --- looking at it ----------------------------------------------------------------------------

    def draw(self, *, threading: Model = "dynamic") -> str:
        """Return a drawing of the graph, as the text of an SVG image.

        It shows which threads run the operators in this threading model.
        """
        return svg(self._operators, self._names, self._pipelines(threading))

    def mermaid(self, *, threading: Model = "dynamic") -> str:
        """Return the same drawing as the text of a Mermaid diagram."""
        return mermaid(self._operators, self._names, self._pipelines(threading))

    def describe(self, *, threading: Model = "dynamic") -> str:
        """Return a description of a run in this threading model, with a line for each operator."""
        return describe(self._operators, self._names, self._pipelines(threading))

    def _pipelines(self, threading: Model) -> dict[Operator, Pipeline]:
        operators = self._plan.operators
        pipelines = pipelines_of(operators, check_model("threading", threading))
        by_name = {operators[at].name: each for each in pipelines for at in each.operators}
        return {
            operator: by_name[name]
            for operator, name in self._names.items()
            if operator.program is not None
        }

    def _repr_svg_(self) -> str:
        """Draw the graph, for notebooks."""
        return self.draw()

    def __repr__(self) -> str:
        return f"<Graph: {' → '.join(map(self._names.__getitem__, self._operators))}>"

    # --- running it -------------------------------------------------------------------------------

    def run_sequentially(
        self,
        inputs: Mapping[str, Iterable[Any]] | Iterable[tuple[str, Iterable[Any]]],
        *,
        batch_size: int = 256,
        row_counts: RowCounts | None = None,
    ) -> R:
        """Run on the calling thread, without actors, and return the result.

        Every other way to run the graph has the same result.

        Functions see the caller's context variables; values that they set are visible only in the
        run.

        Args:
            inputs: The rows for each entry, or pairs of an entry and rows for it in order of
                arrival. If an iterable of rows raises, the rows before that have gone through the
                graph.
            batch_size: The number of rows that go through the graph at a time. The result does not
                depend on it, unless a function modifies a row that it was given or has returned.
            row_counts: Counts the skipped rows.

        Returns:
            The list of the graph's collector; a dictionary of lists by name if there are several,
            None without one.

        Raises:
            StreamError: An operator raised.
            GraphError: There is no such entry.
        """
        check_count("batch_size", batch_size, most=MOST)
        if not isinstance(row_counts, RowCounts | None):
            raise GraphError(f"row_counts must be a RowCounts, got {safe_repr(row_counts)}")
        pairs = sequential.pairs(inputs, self.entries)
        result: R = sequential.run(
            self._complete_plan(), pairs, batch_size, row_counts or RowCounts()
        )
        return result

    def _run_in(
        self,
        system: ActorSystem,
        /,
        *,
        threading: Any = None,
        placement: Any = None,
        policy: Any = None,
        batch_size: int | None = None,
        window: int = 256,
        time_slice: float = 0.0005,
        markers: int = 64,
        hot_keys: int = 0,
        restore: Any = None,
    ) -> Run[R]:
        """Run in an actor system. `ActorSystem.run` calls this."""
        return Run(
            system,
            self._complete_plan(),
            threading=threading,
            placement=placement,
            policy=policy,
            batch_size=batch_size,
            window=window,
            time_slice=time_slice,
            markers=markers,
            hot_keys=hot_keys,
            restore=restore,
        )

    def _complete_plan(self) -> Plan:
        """Return the plan of a whole graph; one that contains it might read more outputs."""
        _check_sides(self._operators, self._names)
        return self._plan


def _upstream(sinks: tuple[Operator, ...]) -> tuple[Operator, ...]:
    """List the operators that lead to the sinks, each after its inputs."""
    done: dict[Operator, None] = {}
    todo = list(reversed(sinks))
    while todo:
        operator = todo[-1]
        waiting = [each.operator for each in operator.inputs if each.operator not in done]
        if waiting:
            todo += reversed(waiting)
        else:
            done[todo.pop()] = None
    return tuple(done)


def _names(operators: tuple[Operator, ...]) -> dict[Operator, str]:
    """Give each operator a unique name: its own, else its label, with a number if needed."""
    taken: dict[str, Operator] = {}
    for operator in operators:
        if operator.name is None:
            continue
        if operator.name in taken:
            kinds = f"{taken[operator.name].kind} and {operator.kind}"
            remedy = ": make one, and use it twice" if kinds == "entry and entry" else ""
            raise GraphError(f"two operators, {kinds}, have the name {operator.name!r}{remedy}")
        taken[operator.name] = operator
    numbers: dict[str, int] = {}  # the last one of each label
    for operator in operators:
        if operator.name is None:
            name = label = operator.label or operator.kind
            while name in taken:
                number = numbers[label] = numbers.get(label, 1) + 1
                name = f"{label} {number}"
            taken[name] = operator
    names = {operator: name for name, operator in taken.items()}
    return {operator: names[operator] for operator in operators}


def _check_sides(operators: tuple[Operator, ...], names: dict[Operator, str]) -> None:
    """Refuse a side output without a reader: its rows would be lost without being counted."""
    read = {outlet for operator in operators for outlet in operator.inputs}
    for operator in operators:
        if operator.kind == "branch":
            continue
        for port, name in enumerate(operator.ports):
            if port and Outlet(operator, port) not in read:
                raise GraphError(f"the side output {name!r} of {names[operator]!r} has no reader")
