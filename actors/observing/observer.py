"""The observer of a system: its records, traces, running graphs, servers and dead letters."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Protocol, runtime_checkable

from callboard._inside.sending.runtime import Runtime
from callboard.observing.answers import answer
from callboard.observing.endpoint import Endpoint
from callboard.observing.kept_dead_letters import KeptDeadLetters
from callboard.observing.layout import GraphShape
from callboard.observing.tracing.traces import Traces
from callboard.observing.wait_report import WaitRecord
from callboard.observing.watching import SystemView
from callboard.scheduling.monitor import ProcessStatistics
from callboard.statistics import Records


class RunningGraph(Protocol):
    """A running graph, or a pool of processes, as a system sees it."""

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        ...

    def waits(self) -> Iterable[WaitRecord]:
        """Report why each operator, or each process, waits."""
        ...

    def leave_waits(self) -> None:
        """End its threads' waits for answers, since the system is being stopped. Any thread."""
        ...

    def end_with_system(self) -> None:
        """Release its resources: the system has stopped. Any thread."""
        ...

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run and of each operator so far, for JSON."""
        ...

    def shape(self) -> GraphShape | None:
        """Return its shape, if it can be drawn."""
        ...


@runtime_checkable
class HasProcesses(Protocol):
    """A pool, or the worker processes."""

    def processes_now(self) -> list[ProcessStatistics]:
        """Return the figures of each process so far. Any thread."""
        ...


class EndedGraph(RunningGraph, Protocol):
    """A graph that has ended."""

    def is_anybody_at_work(self) -> bool:
        """Tell whether its figures may still change."""
        ...


class CountsEnds(Protocol):
    """Something that counts the work of graphs, also of those that end before it looks."""

    def note_end(self, graph: EndedGraph) -> None:
        """Count a graph that has ended. Any thread."""
        ...


class ServedSystem(Protocol):
    """A server through which other processes reach the system."""

    @property
    def address(self) -> object:
        """The address that it listens at."""
        ...

    def health(self) -> dict[str, Any]:
        """Return its figures, for JSON. Any thread."""
        ...


class EndsWithSystem(Protocol):
    """Something that is stopped when its system has stopped."""

    def stop(self) -> None:
        """End it. A second call does nothing."""
        ...


class Observer:
    """The records, traces, running graphs, servers and dead letters of one system, for display."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.records = Records(runtime)
        self.traces = Traces(runtime, self.records)
        self.letters = KeptDeadLetters()
        self._graphs: weakref.WeakSet[RunningGraph] = weakref.WeakSet()
        self._counters: weakref.WeakSet[CountsEnds] = weakref.WeakSet()
        self._servers: weakref.WeakSet[ServedSystem] = weakref.WeakSet()
        self._ended_with_system: weakref.WeakSet[EndsWithSystem] = weakref.WeakSet()
        self._close_endpoint: weakref.finalize[..., Observer] | None = None

    def add_graph(self, graph: RunningGraph) -> None:
        """Show a graph, or a pool, for as long as it runs."""
        self._graphs.add(graph)

    def graphs(self) -> list[RunningGraph]:
        """Return the graphs and pools that run. Any thread."""
        while True:
            try:
                return [graph for graph in list(self._graphs) if not graph.ended]
            except RuntimeError:
                pass  # one was begun in the middle

    def processes(self) -> list[ProcessStatistics]:
        """Return the figures of worker processes, and of those of pools. Any thread."""
        owners = [graph for graph in self.graphs() if isinstance(graph, HasProcesses)]
        found = [process for owner in owners for process in owner.processes_now()]
        return sorted(found, key=lambda one: one.name)

    def count_ends(self, counter: CountsEnds) -> None:
        """Tell `counter`, for as long as it lives, of each graph that ends."""
        self._counters.add(counter)

    def note_end(self, graph: EndedGraph) -> None:
        """Tell the counters that a graph has ended. Any thread."""
        for counter in list(self._counters):
            counter.note_end(graph)

    def add_server(self, server: ServedSystem) -> None:
        """Show a server through which other processes reach the system."""
        self._servers.add(server)

    def served(self) -> list[dict[str, Any]]:
        """Return the health of the system's servers, for JSON. Any thread."""
        return [{"address": str(one.address)} | one.health() for one in list(self._servers)]

    def keep_letters(self) -> None:
        """Keep the latest dead letters from now on, to be shown."""
        self.runtime.dead_letters.keeper = self.letters.keep

    def open_endpoint(self) -> None:
        """Let other processes inspect the system. Raises CallboardError, OSError."""
        self.keep_letters()
        answers = partial(_answer, weakref.ref(self))
        endpoint = Endpoint(self.runtime.name, answers, partial(_watch, self.runtime))
        self._close_endpoint = weakref.finalize(self, endpoint.close)

    def stop_with_system(self, one: EndsWithSystem) -> None:
        """Call `one.stop()` when the system has stopped, if `one` still exists then."""
        self._ended_with_system.add(one)

    def close(self) -> None:
        """End traces and everything that inspects the system."""
        self.traces.finish()
        for one in list(self._ended_with_system):
            one.stop()
        if self._close_endpoint is not None:
            self._close_endpoint()


def _answer(reference: weakref.ref[Observer], question: str) -> Any:
    """Answer an observer in another process; with None if the system was collected."""
    observer = reference()
    return None if observer is None else answer(observer, question)


def _watch(runtime: Runtime) -> Callable[[str], Any]:
    """Begin to answer an observer that stays connected."""
    return SystemView(runtime).answer
