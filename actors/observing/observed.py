"""Seeing a system: its figures, its logs, its traces, and why its actors wait."""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from callboard._inside.sending.runtime import Runtime
from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.observing.answers import answer
from callboard.observing.endpoint import Endpoint
from callboard.observing.traces import LIMIT, Traces
from callboard.observing.wait import Wait, Waits
from callboard.observing.waits import waits_of
from callboard.observing.watching import SystemView
from callboard.scheduling.config import Config
from callboard.scheduling.monitor import Statistics
from callboard.scheduling.tracing.recording import TraceFile
from callboard.statistics import Logs, collect


class RunningGraph(Protocol):
    """A graph at work, or a pool of processes, as a system sees it."""

    ended: bool

    def waits(self) -> Iterable[Wait]:
        """Say of each operator why it does nothing, or of each process."""
        ...

    def leave_waits(self) -> None:
        """Have its threads wait no more for answers, as the system is being stopped. Any thread."""
        ...

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run and of each operator so far, for JSON."""
        ...


class Observed:
    """The part of ActorSystem that shows what happens in it."""

    config: Config
    _closing: weakref.finalize[..., Observed] | None = None
    _runtime: Runtime
    _logs: Logs
    _traces: Traces

    def _observe(self, runtime: Runtime) -> None:
        """Have what shows the system."""
        self._logs = Logs(runtime)
        self._traces = Traces(runtime, self._logs)
        self._running: weakref.WeakSet[RunningGraph] = weakref.WeakSet()

    def _graphs(self) -> list[RunningGraph]:
        """Return the graphs and pools that run. Any thread."""
        while True:
            try:
                return [graph for graph in list(self._running) if not graph.ended]
            except RuntimeError:
                pass  # one was begun in the middle

    def _open_endpoint(self) -> None:
        """Let observers ask, if the system is to be observable. Raises CallboardError, OSError."""
        if self.config.observable:
            watch = partial(_watch, self._runtime)
            endpoint = Endpoint(self.config.name, partial(_answer, weakref.ref(self)), watch)
            self._closing = weakref.finalize(self, endpoint.close)

    def _end_observing(self) -> None:
        """End traces, and let nobody ask any more."""
        self._traces.finish()
        if self._closing is not None:
            self._closing()

    def statistics(self) -> Statistics:
        """Return the figures of every live actor and every worker, to be printed or looked into.

        Times and queues are known if the system was made with a `monitoring` level.
        """
        return collect(self._runtime)

    def waits(self, stuck_after: float = 1.0) -> Waits:
        """Return why each live actor, and each operator of a running graph, does nothing just now.

        Print it, or look into it: see Waits. An actor that has been in one message for
        `stuck_after` seconds or longer is stuck, and its entry has its Python stack. In any thread,
        at every monitoring level; it disturbs no actor.
        """
        seconds = checks.seconds("stuck_after", stuck_after, error=ConfigError)
        return waits_of(self._runtime, seconds)

    def tracing(
        self,
        path: str | os.PathLike[str],
        *,
        format: str | None = None,  # noqa: A002
        limit: int = LIMIT,
    ) -> TraceFile:
        """Begin to write a trace of all workers to a file, and return it. Leave it to end it:

            with system.tracing("run.perfetto-trace"):
                ...

        It has each dispatch by worker, waits, slices of operators, lengths of mailboxes, dead
        letters, failures and restarts. https://ui.perfetto.dev opens it. `format` is "perfetto" or
        "json", which Chrome's viewer shows, too; without it, the path's end says which. At `limit`
        bytes it ends. It ends with its system at the latest.

        Raises CallboardError if monitoring is off, ConfigError, and OSError if the file cannot be
        made.
        """
        self._runtime.refuse_fork()
        return self._traces.open(path, format, limit, from_now=True)

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Write what the flight recorder has to a file. The end of the path says the format.

        The system was made with `trace=FlightRecorder(...)`; else CallboardError is raised. Raises
        OSError if the file cannot be written.
        """
        self._runtime.refuse_fork()
        self._traces.write(path)

    def log_lines(self, worker: int) -> list[str]:
        """Return the latest lines of a worker's log: one for each dispatch, see `WorkerLog`.

        Raises CallboardError if monitoring is off, ConfigError if there is no such worker.
        """
        return self._logs.lines(worker)

    def write_logs(self, directory: str | os.PathLike[str]) -> list[Path]:
        """Write each worker's log to a file of its own in `directory`, until the system is stopped.

        All that was recorded so far is in the files when this returns. Return the files. Raises
        CallboardError if monitoring is off, and OSError if they cannot be written.
        """
        return self._logs.write(directory)


def _answer(reference: weakref.ref[Observed], question: str) -> Any:
    """Answer an observer; None where the system is gone."""
    system = reference()
    return None if system is None else answer(system, question)


def _watch(runtime: Runtime) -> Callable[[str], Any]:
    """Begin to answer an observer that stays."""
    return SystemView(runtime).answer
