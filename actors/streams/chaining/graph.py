"""Graphs of operators, ready to run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Generic, Literal, TypeVar, overload

from callboard.core.handles import public_names
from callboard.core.text import safe_repr
from callboard.scheduling.flow.threading_models import Model
from callboard.streams.checks import MOST, check_choice, check_count
from callboard.streams.drawing import describe, mermaid, svg
from callboard.streams.errors import GraphError
from callboard.streams.planning.operator import Operator, Outlet
from callboard.streams.planning.plan import Plan, check_model
from callboard.streams.planning.planner import plan_of
from callboard.streams.planning.units import Unit, units_of
from callboard.streams.running import sequential
from callboard.streams.running.row_counts import RowCounts
from callboard.streams.running.run import Run
from callboard.system import ActorSystem

R = TypeVar("R")


class Graph(Generic[R]):
    """Streams from their entries to their sinks, checked and ready to run, any number of times.

    A sink, such as `collect()`, makes a graph of the stream that it ends. `Graph(a, b)` is one with
    the sinks of several; streams that they share are one stream in it.

    `system.run(graph)` starts it, and returns its Run. The options are:

    - `threading`: the model of operators that have none by `stream.run_on()`. The default is
      the configuration's, else `dynamic`. Each has the same results, order and errors.

      - `dynamic`: any worker runs any operator, a stateful one in one at a time.
      - `manual`: the thread that calls `send()` and `finish()`, always the same one or the same
        actor, runs all operators. Behind `stream.new_thread()` another thread takes over.
      - `dedicated`: each operator has a thread of its own.
      - `assigned`: each operator lives on a worker, as `placement` says, until `run.rebalance()`
        moves it.
    - `placement`: the policy, or the name of one, that assigns operators: see `spawn`. The default
      is the configuration's, else `round_robin`.
    - `policy`: the heuristic that chooses among `dynamic` operators; the default is the
      configuration's, else `last_in_pipeline`.
    - `batch_size`: the most rows that go through the graph together. By default there are 512, and
      fewer where an operator takes more than 4 µs for a row, so that a batch takes it 2 ms.
      Smaller batches have a lower latency, larger ones a lower cost.
    - `window`: how many batches may be on their way, a power of two. It bounds memory.
    - `time_slice`: how long a worker stays with an operator, in seconds.
    - `markers`: the latency of one of so many batches is measured; 0 measures none.
    - `hot_keys`: the statistics of keyed operators in Python have so many of the keys that come
      most often.
    - `restore`: the `Snapshot` that the run goes on with, the path of one, or `SnapshotStore`, a
      directory of them.

    It raises ConfigError for invalid values, and SnapshotError for a snapshot that is broken, or of
    another graph.

    Raises GraphError if two entries, or two operators with given names, have the same name.
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
                raise GraphError(f"a graph is made of graphs, each with its sinks, not of {what}")
            sinks.update(dict.fromkeys(part._sinks))
        if not sinks:
            raise GraphError("a graph has a sink")
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
        """The names of its entries."""
        return self._plan.entries

    @property
    def collectors(self) -> tuple[str, ...]:
        """The names of its `collect()`s."""
        return tuple(self._names[each] for each in self._operators if each.kind == "collect")

    # --- looking at it ----------------------------------------------------------------------------

    def draw(
        self,
        format: Literal["svg", "mermaid"] = "svg",  # noqa: A002
        *,
        threading: Model = "dynamic",
    ) -> str:
        """Draw the graph, as the text of an SVG picture or of a Mermaid diagram.

        It shows which threads work on operators in a run by this threading model.
        """
        check_choice("format", format, ("svg", "mermaid"))
        draw = svg if format == "svg" else mermaid
        return draw(self._operators, self._names, self._units(threading))

    def mermaid(self, *, threading: Model = "dynamic") -> str:
        """Draw the graph, as the text of a Mermaid diagram."""
        return self.draw("mermaid", threading=threading)

    def describe(self, *, threading: Model = "dynamic") -> str:
        """Say what the graph does, in a run by this threading model: a line for each operator."""
        return describe(self._operators, self._names, self._units(threading))

    def _units(self, threading: Model) -> dict[Operator, Unit]:
        steps = self._plan.steps
        units = units_of(steps, check_model("threading", threading))
        by_name = {steps[number].name: unit for unit in units for number in unit.steps}
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
        tally: RowCounts | None = None,
    ) -> R:
        """Run on the calling thread, with no actors, and return the result.

        `inputs` are the rows for each entry, or pairs of an entry and rows for it in the order of
        their arrival. The result is the list of the graph's `collect()`; a dictionary of lists by
        name if there are several, None if there is none. `tally` counts the skipped rows.

        The result does not depend on `batch_size`, the number of rows that go through the graph at
        a time, unless a function changes what it has given or was given. Every other way to run the
        graph has the same result.

        Functions see the caller's context variables; values that they set stay in the run.

        Raises StreamError when an operator raises, and GraphError for an unknown entry. If `rows`
        of an entry raise, those that were given before have gone through the graph.
        """
        check_count("batch_size", batch_size, most=MOST)
        if not isinstance(tally, RowCounts | None):
            raise GraphError(f"tally is a RowCounts, not {safe_repr(tally)}")
        pairs = sequential.pairs(inputs, self.entries)
        result: R = sequential.run(self._complete_plan(), pairs, batch_size, tally or RowCounts())
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
    """Give each operator a name of its own: its own, else its label's, with a number if need be."""
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
    """Refuse a side output that nobody reads: its rows would be lost, and not be counted."""
    read = {outlet for operator in operators for outlet in operator.inputs}
    for operator in operators:
        if operator.kind == "branch":
            continue
        for port, name in enumerate(operator.ports):
            if port and Outlet(operator, port) not in read:
                raise GraphError(f"nobody reads the side output {name!r} of {names[operator]!r}")
