"""Traces of a running system: recorded to a file from now on, or dumped from a flight recorder."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from callboard.observing.tracing.traces import LIMIT
from callboard.scheduling.tracing.flight_recorder import ARROWS

if TYPE_CHECKING:
    from callboard.scheduling.tracing.recording import TraceFile
    from callboard.system import ActorSystem


def record_trace(
    system: ActorSystem,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,  # noqa: A002
    limit: int = LIMIT,
    arrows: int = ARROWS,
) -> TraceFile:
    """Begin to write a trace of all workers to a file, and return it. Leave it to end it:

        with record_trace(system, "run.perfetto-trace"):
            ...

    It has each dispatch by worker, waits, slices of operators, lengths of mailboxes, dead letters,
    failures and restarts. https://ui.perfetto.dev opens it. `format` is "perfetto" or
    "text", a line for each dispatch; without it, a path that ends in .txt is text. At `limit` bytes
    it ends. It ends with its system at the latest. One of `arrows` messages between actors has an
    arrow, from the dispatch that sent it to the one that took it; of several traces at a time the
    smallest number holds.

    Raises CallboardError if monitoring is off, ConfigError, and OSError if the file cannot be made.
    """
    return system._observer.traces.open(path, format, limit, arrows, from_now=True)


def dump_trace(system: ActorSystem, path: str | os.PathLike[str]) -> None:
    """Write what the flight recorder has to a file. The end of the path says the format.

    The system was made with `trace=FlightRecorder(...)`; else CallboardError is raised. Raises
    OSError if the file cannot be written.
    """
    system._observer.traces.write(path)
