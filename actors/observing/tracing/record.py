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
    """Begin to write a trace of all workers to a file. Leaving its `with` block ends it:

        with record_trace(system, "run.perfetto-trace"):
            ...

    The trace has each worker's dispatches, waits, the work of operators, lengths of mailboxes, dead
    letters, failures and restarts. Open it with https://ui.perfetto.dev. It ends with its system at
    the latest.

    Args:
        system: The system to trace.
        path: The file to write.
        format: "perfetto", or "text" with a line for each dispatch. By default a path that ends
            in `.txt` is text.
        limit: The size in bytes at which the trace ends.
        arrows: One in this number of messages between actors has an arrow, from the dispatch that
            sent it to the one that received it. With several traces at a time, the smallest number
            applies.

    Raises:
        CallboardError: Monitoring is off.
        ConfigError: An argument is invalid.
        OSError: The file cannot be made.
    """
    return system._observer.traces.open(path, format, limit, arrows, from_now=True)


def dump_trace(system: ActorSystem, path: str | os.PathLike[str]) -> None:
    """Write the flight recorder's contents to a file. The path's ending decides the format.

    Raises CallboardError if the system was made without `trace=FlightRecorder(...)`, and OSError if
    the file cannot be written.
    """
    system._observer.traces.write(path)
