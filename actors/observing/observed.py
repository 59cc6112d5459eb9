"""Seeing a system: its figures, its traces, and why its actors wait."""

from __future__ import annotations

import importlib
import os
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

from callboard._inside.sending.runtime import Runtime
from callboard.core import checks
from callboard.core.errors import CallboardError, ConfigError
from callboard.observing.answers import answer
from callboard.observing.endpoint import Endpoint
from callboard.observing.kept_letters import KeptLetters
from callboard.observing.shape import GraphShape
from callboard.observing.thresholds import MailboxEvent, MailboxWatch
from callboard.observing.tracing.talk_picture import BY, TalkPicture, picture_of
from callboard.observing.tracing.traces import LIMIT, Traces
from callboard.observing.wait import Wait, Waits
from callboard.observing.waits import waits_of
from callboard.observing.watching import SystemView
from callboard.recipient import Recipient
from callboard.scheduling.config import Config
from callboard.scheduling.monitor import Statistics
from callboard.scheduling.tracing.flight_recorder import ARROWS
from callboard.scheduling.tracing.recording import TraceFile
from callboard.statistics import Records, collect


class ServedPage(Protocol):
    """A page of the system that is being served, as a system sees it."""

    @property
    def url(self) -> str:
        """The address, with the token."""
        ...

    def stop(self) -> None:
        """Serve no more."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        """Serve no more."""
        ...


class RunningGraph(Protocol):
    """A graph at work, or a pool of processes, as a system sees it."""

    @property
    def ended(self) -> bool:
        """Whether it is at work no more."""
        ...

    def waits(self) -> Iterable[Wait]:
        """Say of each operator why it does nothing, or of each process."""
        ...

    def leave_waits(self) -> None:
        """Have its threads wait no more for answers, as the system is being stopped. Any thread."""
        ...

    def end_with_system(self) -> None:
        """Let go what it holds: the system has stopped. Any thread."""
        ...

    def figures(self) -> dict[str, Any]:
        """Return the figures of the run and of each operator so far, for JSON."""
        ...

    def shape(self) -> GraphShape | None:
        """Return what it looks like, if it can be drawn."""
        ...


class EndedGraph(RunningGraph, Protocol):
    """A graph that has ended."""

    def is_anybody_at_work(self) -> bool:
        """Tell whether its figures may still change."""
        ...


class CountsEnds(Protocol):
    """Something that counts what graphs do, also those that end before it looks."""

    def note_end(self, graph: EndedGraph) -> None:
        """Count a graph that has ended. Any thread."""
        ...


class ServedSystem(Protocol):
    """A server by which other processes reach the system, as the system sees it."""

    @property
    def address(self) -> object:
        """Where it listens."""
        ...

    def health(self) -> dict[str, Any]:
        """Return its figures, for JSON. Any thread."""
        ...


class Observed:
    """The part of ActorSystem that shows what happens in it."""

    config: Config
    _closing: weakref.finalize[..., Observed] | None = None
    _runtime: Runtime
    _records: Records
    _traces: Traces

    def _observe(self, runtime: Runtime) -> None:
        """Have what shows the system."""
        self._records = Records(runtime)
        self._traces = Traces(runtime, self._records)
        self._running: weakref.WeakSet[RunningGraph] = weakref.WeakSet()
        self._counters: weakref.WeakSet[CountsEnds] = weakref.WeakSet()
        self._servers: weakref.WeakSet[ServedSystem] = weakref.WeakSet()
        self._letters = KeptLetters()
        self._dashboards: set[ServedPage] = set()
        self._mailbox_watches: weakref.WeakSet[MailboxWatch] = weakref.WeakSet()

    def _graphs(self) -> list[RunningGraph]:
        """Return the graphs and pools that run. Any thread."""
        while True:
            try:
                return [graph for graph in list(self._running) if not graph.ended]
            except RuntimeError:
                pass  # one was begun in the middle

    def _count_ends(self, counter: CountsEnds) -> None:
        """Tell `counter`, for as long as it lives, of each graph that ends."""
        self._counters.add(counter)

    def _note_end(self, graph: EndedGraph) -> None:
        """Hear from a graph that it has ended. Any thread."""
        for counter in list(self._counters):
            counter.note_end(graph)

    def _served(self) -> list[dict[str, Any]]:
        """Return the health of the system's servers, for JSON. Any thread."""
        return [{"address": str(one.address)} | one.health() for one in list(self._servers)]

    def _open_endpoint(self) -> None:
        """Let observers ask, if the system is to be observable. Raises CallboardError, OSError."""
        if self.config.observable:
            watch = partial(_watch, self._runtime)
            self._keep_letters()
            endpoint = Endpoint(self.config.name, partial(_answer, weakref.ref(self)), watch)
            self._closing = weakref.finalize(self, endpoint.close)

    def _keep_letters(self) -> None:
        """Keep the latest dead letters from now on, for those that look."""
        self._runtime.dead_letters.keeper = self._letters.keep

    def _end_observing(self) -> None:
        """End traces, and let nobody ask any more."""
        self._traces.finish()
        for watch in list(self._mailbox_watches):
            watch.stop()
        for page in self._dashboards:
            page.stop()
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
        arrows: int = ARROWS,
    ) -> TraceFile:
        """Begin to write a trace of all workers to a file, and return it. Leave it to end it:

            with system.tracing("run.perfetto-trace"):
                ...

        It has each dispatch by worker, waits, slices of operators, lengths of mailboxes, dead
        letters, failures and restarts. https://ui.perfetto.dev opens it. `format` is "perfetto" or
        "text", a line for each dispatch; without it, a path that ends in .txt is text. At `limit`
        bytes it ends. It ends with its system at the latest. One of `arrows` messages between
        actors has an arrow, from the dispatch that sent it to the one that took it; of several
        traces at a time the smallest number holds.

        Raises CallboardError if monitoring is off, ConfigError, and OSError if the file cannot be
        made.
        """
        self._runtime.refuse_fork()
        return self._traces.open(path, format, limit, arrows, from_now=True)

    def write_trace(self, path: str | os.PathLike[str]) -> None:
        """Write what the flight recorder has to a file. The end of the path says the format.

        The system was made with `trace=FlightRecorder(...)`; else CallboardError is raised. Raises
        OSError if the file cannot be written.
        """
        self._runtime.refuse_fork()
        self._traces.write(path)

    def picture(self, by: str | None = None) -> TalkPicture:
        """Return who tells and asks whom, and about how often, as the traces so far have seen it.

        It is made of the samples that traces take of messages: those with arrows, and some from
        outside. A notebook draws it, and its text is a table.
        `by` is "actor", "class", or None: actors if they are few, else their classes.

        Raises CallboardError without a trace, and ConfigError.
        """
        self._runtime.refuse_fork()
        if by is not None:
            checks.one_of("`by`", by, BY, error=ConfigError)
        return picture_of(self._traces.talk(), self._runtime.name, by)

    def watch_mailboxes(
        self,
        *,
        high: int,
        low: int | None = None,
        every: float = 1.0,
        to: Recipient[MailboxEvent] | Callable[[MailboxEvent], object] | None = None,
    ) -> MailboxWatch:
        """Log an event for each mailbox in which `high` messages wait; hand it to `to`, as well.

        The next event of that mailbox is that `low` or less wait, half of `high` without it, or
        that the actor has ended. A thread looks each `every` seconds, so a mailbox that is long for
        less time may have no event; it calls the function. Senders and receivers do no more work.
        An event about the mailbox of the ref `to` itself is logged, and not sent to it. The watch
        ends with the system, with its `stop()`, and when nobody has what this returns.

        Raises CallboardError below the monitoring level "mailboxes", at which mailboxes without
        limits are not counted, and ConfigError.
        """
        self._runtime.refuse_fork()
        if not (self.config.counted or self._runtime.manual):  # a manual system has no levels
            raise CallboardError(
                f"the system {self._runtime.name!r} counts no mailboxes, because monitoring is "
                f"{self.config.monitoring!r}: make it with monitoring='mailboxes'"
            )
        most = checks.whole("`high`", high, error=ConfigError)
        least = most // 2 if low is None else checks.whole("`low`", low, 0, error=ConfigError)
        seconds = checks.seconds("`every`", every, zero=False, error=ConfigError)
        watch = MailboxWatch(self._runtime, most, least, seconds, to)
        self._mailbox_watches.add(watch)
        return watch

    def serve_dashboard(
        self,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        token: str | None = None,
        servers: Iterable[Any] = (),
    ) -> ServedPage:
        """Serve a page that shows the system, and return it: open its `url` in a browser.

        Without a `port` it has one that is free. Only browsers on this machine reach it, unless
        `host` says another address, and only those with the token, which is in the `url`, see the
        system. A `token` of yours is 16 to 256 letters, digits and ._~!$&'()*+,;=:@/?-. A thread
        serves it until its `stop()`, or the system's. It has 64 connections at most. From now on
        the system keeps its latest 100 dead letters with their messages, to be shown.

        `servers` are connections of `callboard.remote`, also to shards: the page shows how their
        servers are, wherever these run.

        Raises ModuleNotFoundError without the extra `dashboard`, ConfigError, and OSError if the
        port is taken.
        """
        self._runtime.refuse_fork()
        serving = importlib.import_module("callboard.dashboard.serving")
        self._keep_letters()
        dashboard: ServedPage = serving.serve_dashboard(self, host, port, token, servers)
        self._dashboards.add(dashboard)
        return dashboard


def _answer(reference: weakref.ref[Observed], question: str) -> Any:
    """Answer an observer; None where the system is gone."""
    system = reference()
    return None if system is None else answer(system, question)


def _watch(runtime: Runtime) -> Callable[[str], Any]:
    """Begin to answer an observer that stays."""
    return SystemView(runtime).answer
