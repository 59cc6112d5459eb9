"""The traces that are being recorded of one system."""

from __future__ import annotations

import signal
import threading
import weakref
from types import FrameType
from typing import TYPE_CHECKING, Any

from callboard.core import checks
from callboard.core.errors import CallboardError, ConfigError
from callboard.diagnosis import all_actors
from callboard.observing.tracing.message_counts import MessageCounts
from callboard.scheduling.tracing.flight_recorder import ARROWS, FlightRecorder, check_arrows
from callboard.scheduling.tracing.formats import ProcessWork, check_path
from callboard.scheduling.tracing.recording import (
    LatestTrace,
    RecordReader,
    TraceFile,
    not_recorded,
)

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime
    from callboard.scheduling.worker import WorkerThread
    from callboard.statistics import Records

LIMIT = 1_000_000_000
"""The size, in bytes, at which a trace ends."""


class Traces:
    """The recordings of one system. It is told of dead letters, failures and restarts."""

    def __init__(self, runtime: Runtime, records: Records) -> None:
        self._runtime = runtime
        self._records = records
        self._lock = threading.Lock()
        self._traces: tuple[TraceFile, ...] = ()
        self._latest: LatestTrace | None = None
        self._signal: tuple[int, Any] | None = None  # and its handler from before
        self._arrows: dict[TraceFile | LatestTrace, int] = {}  # one in this many messages has one
        self._counts: MessageCounts | None = None

    def begin(self, wanted: str | FlightRecorder | None) -> None:
        """Record from the start, by the system's option. Raises CallboardError, OSError."""
        if isinstance(wanted, FlightRecorder):
            reader = RecordReader(self._workers, from_now=False)
            self._latest = LatestTrace(wanted, self._runtime.name, reader, self._records.paths)
            self._arrows[self._latest] = wanted.arrows
            if wanted.signal is not None:
                self._handle_signal(wanted.signal, self._latest)
            self._records.add_reader(self._latest.drain)
            self._runtime.dead_letters.observer = self.note
            self._sample()
        elif wanted is not None:
            self.open(wanted, None, LIMIT, ARROWS, from_now=False)

    def open(
        self, path: Any, format_name: str | None, limit: Any, arrows: Any, *, from_now: bool
    ) -> TraceFile:
        """Begin a trace in a file. Raises CallboardError, ConfigError, OSError."""
        self._runtime.refuse_fork()
        checked = check_path("a trace's path", path)
        most = checks.whole("the limit of a trace", limit, error=ConfigError)
        every = check_arrows("`arrows` of a trace", arrows)
        runtime = self._runtime
        if runtime.records is None:
            raise not_recorded(runtime.name)
        reader = RecordReader(self._workers, from_now=from_now)
        trace = TraceFile(
            checked, format_name, most, runtime.name, reader, self._records.paths, self._forget
        )
        with self._lock:
            self._traces = (*self._traces, trace)
            self._arrows[trace] = every
        runtime.dead_letters.observer = self.note
        self._records.add_reader(trace._drain)
        self._sample()
        return trace

    def write(self, path: Any) -> None:
        """Write the flight recorder's trace. Raises CallboardError without one, OSError."""
        self._runtime.refuse_fork()
        checked = check_path("a trace's path", path)
        if self._latest is None:
            raise CallboardError(
                f"the system {self._runtime.name!r} has no flight recorder: make it with "
                "trace=FlightRecorder()"
            )
        self._latest.write(checked)

    def write_for(self, reason: str) -> str | None:
        """Write the flight recorder's trace where its options say; return its path, or None."""
        return None if self._latest is None else self._latest.write_for(reason)

    def note(self, what: str, ref: ActorRef[Any], detail: str) -> None:
        """Record an event of an actor. Any thread."""
        text = f"{what} {ref._short_path}{': ' if detail else ''}{detail}"
        for trace in self._traces:
            trace._note(text)
        latest = self._latest
        if latest is not None:
            latest.note(text)
            if what == FAILURE:
                latest.write_for(text)

    @property
    def is_recording(self) -> bool:
        """Whether anything is recorded."""
        return bool(self._traces) or self._latest is not None

    def note_work(self, one: ProcessWork) -> None:
        """Record a round of a worker process. Any thread."""
        for trace in self._traces:
            trace._note_work(one)
        if self._latest is not None:
            self._latest.note_work(one)

    def finish(self) -> None:
        """End all traces: the workers have ended."""
        for trace in self._traces:
            trace.close()
        if self._signal is not None and threading.current_thread() is threading.main_thread():
            signal.signal(*self._signal)
            self._signal = None

    def message_counts(self) -> MessageCounts:
        """Return the messages between actors, as traces have seen them. Raises CallboardError."""
        self._runtime.refuse_fork()
        if self._counts is None:
            raise CallboardError(
                f"the system {self._runtime.name!r} has no trace of the messages between its "
                "actors: draw the graph after `with record_trace(system, path)`, or make "
                "the system with trace="
            )
        self._counts.read()
        return self._counts

    def _sample(self) -> None:
        """Set how many messages are samples, for the present traces; none without a trace."""
        if self._runtime.forked:
            return
        with self._lock:
            every = min(self._arrows.values(), default=0)
            runtime = self._runtime
            if self._counts is None:
                self._counts = MessageCounts(
                    RecordReader(self._workers, from_now=True), self._records
                )
            if every == runtime.sampled_every:
                return
            self._counts.begin(every)
            runtime.sampled_every = every
            for ref in list(all_actors(runtime)):
                ref._be_sampled(every != 0)
            if every:
                self._records.add_reader(self._counts.drain)
            else:
                self._records.remove_reader(self._counts.drain)

    def _workers(self) -> list[WorkerThread]:
        team = self._runtime.team  # whose lists are read without its lock: see RecordReader
        return [*team.workers, *team.dedicated]

    def _forget(self, trace: TraceFile) -> None:
        with self._lock:
            self._traces = tuple(one for one in self._traces if one is not trace)
            self._arrows.pop(trace, None)
        self._sample()
        self._records.remove_reader(trace._drain)

    def _handle_signal(self, number: int, latest: LatestTrace) -> None:
        if threading.current_thread() is not threading.main_thread():
            raise CallboardError(
                "a FlightRecorder with a signal needs a system made in the main thread, where "
                f"Python runs signal handlers, got the thread {threading.current_thread().name!r}"
            )
        reference = weakref.ref(latest)

        def write(number: int, frame: FrameType | None) -> None:
            recorder = reference()
            if recorder is not None:  # in a thread: the main one may be in the recorder's lock
                name = signal.Signals(number).name
                threading.Thread(target=recorder.write_now, args=(name,), daemon=True).start()

        try:
            self._signal = number, signal.signal(number, write)
        except (OSError, ValueError) as error:
            raise ConfigError(f"the signal {number} cannot be handled: {error}") from error


FAILURE = "failure of"
"""The beginning of the note of a failure."""
