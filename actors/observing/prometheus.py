"""Metrics for Prometheus, by its client library.

It needs `prometheus_client`, the extra `prometheus`.
"""

from __future__ import annotations

import threading
import weakref
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr, sendable
from callboard.diagnosis import actors_and_paths
from callboard.observing.scan import ActorScan, ClassTotals

try:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
        Metric,
    )
    from prometheus_client.registry import Collector
except ModuleNotFoundError as _missing:
    raise ModuleNotFoundError(
        "metrics need prometheus_client: pip install 'callboard[prometheus]'", name=_missing.name
    ) from _missing

if TYPE_CHECKING:
    from callboard._inside.sending.ref import ActorRef
    from callboard._inside.sending.runtime import Runtime
    from callboard.core.monitoring.time_distribution import TimeDistribution
    from callboard.observing.observer import EndedGraph, RunningGraph
    from callboard.system import ActorSystem

__all__ = ["SystemCollector"]

# The metrics: name, kind, labels beside the system's, and description.
_ACTORS = (
    ("actors", "gauge", "live actors"),
    ("messages", "counter", "messages that actors handled"),
    ("busy_seconds", "counter", "time in dispatches; 0 without monitoring"),
    ("mailbox_messages", "gauge", "messages that wait, where they are counted"),
    ("mailbox_longest", "gauge", "messages in the longest mailbox"),
    ("mailbox_dropped", "counter", "messages that full mailboxes dropped or refused"),
)
_WORKERS = (
    ("worker_dispatches", "counter", "dispatches of a worker"),
    ("worker_idle_seconds", "counter", "time of a worker without work"),
    ("worker_waits", "counter", "how often a worker had no work"),
)
_OPERATORS = (
    ("operator_rows_in", "counter", "rows that an operator took"),
    ("operator_rows_out", "counter", "rows that an operator gave"),
    ("operator_busy_seconds", "counter", "time of workers at an operator"),
    ("operator_queued_rows", "gauge", "about how many rows wait for an operator"),
    ("operator_workers", "gauge", "workers at work on an operator"),
)
_PROCESSES = (
    ("process_done", "counter", "rounds or messages that a process handled"),
    ("process_busy_seconds", "counter", "processor time of a process"),
    ("process_sent_bytes", "counter", "bytes that were sent to a process"),
    ("process_received_bytes", "counter", "bytes that came back from a process"),
    ("process_waiting", "gauge", "rounds or messages that a process has not handled"),
    ("process_ends", "counter", "processes that ended and were replaced"),
)
_NAMED = (
    ("actor_messages", "counter", "messages that an actor handled"),
    ("actor_busy_seconds", "counter", "time in an actor's dispatches; 0 without monitoring"),
    ("actor_mailbox_messages", "gauge", "messages that wait for an actor, where counted"),
)
# Histograms: of classes, and of actors that a pattern names.
_TIMES = (
    ("processing_seconds", "time of a message in work, the mean of its dispatch"),
    ("mailbox_seconds", "time of a message in the mailbox, of one in 16"),
)
# From a microsecond to 17 seconds, by doubling: bounds of buckets, so that counts are exact.
_BOUNDS = tuple(2**i for i in range(10, 35))


class SystemCollector(Collector):
    """The metrics of one or more systems, to be registered once:

        REGISTRY.register(SystemCollector(system))

    Each metric has the label `system`. Metrics of actors are sums for each class. A system that was
    stopped or collected has no metrics; the collector does not keep it alive. Any thread may call
    `collect()`.

    Args:
        *systems: The systems.
        actors: Patterns of paths, such as "/shop/*", of actors that also have individual metrics.

    Raises ConfigError.
    """

    def __init__(self, *systems: ActorSystem, actors: Iterable[str] = ()) -> None:
        self._patterns = [actors] if isinstance(actors, str) else list(actors)
        names: Counter[str] = Counter()
        for system in systems:
            if not hasattr(system, "_runtime"):
                raise ConfigError(f"metrics expect actor systems, got {safe_repr(system)}")
            names[system.name] += 1
        for name, count in names.items():
            if count > 1:
                raise ConfigError(
                    f"metrics distinguish systems by name, but {count} are named {name!r}"
                )
        if not systems:
            raise ConfigError("SystemCollector() expects at least one system")
        for pattern in self._patterns:
            if not isinstance(pattern, str):
                raise ConfigError(f"`actors` expects patterns of paths, got {safe_repr(pattern)}")
        self._sources = [_Source(system, self._patterns) for system in systems]
        self._lock = threading.Lock()

    def describe(self) -> Iterable[Metric]:
        """Return the metrics without samples, for a registry."""
        return _Families().all()

    def collect(self) -> Iterable[Metric]:
        """Return all metrics."""
        families = _Families()
        with self._lock:
            for source in self._sources:
                source.add_to(families)
        return families.all()


class _Families:
    """The metrics of one scrape."""

    def __init__(self) -> None:
        self._families: dict[str, Any] = {}
        for label, metrics in (
            ("class", _ACTORS),
            ("worker", _WORKERS),
            ("operator", _OPERATORS),
            ("process", _PROCESSES),
            ("actor", _NAMED),
        ):
            for name, kind, text in metrics:
                self._make(name, kind, text, label)
        for name, text in _TIMES:
            self._make(name, "histogram", text, "class")
            self._make(f"actor_{name}", "histogram", text, "actor")
        self._make("dead_letters", "counter", "messages that were told and not handled", "reason")
        self._make("failures", "counter", "failures of actors")
        self._make("run_rows", "counter", "rows that were sent into runs of graphs")
        self._make("run_rows_dropped", "counter", "rows that runs did not use", "reason")

    def _make(self, name: str, kind: str, text: str, *labels: str) -> None:
        cls: Any = {
            "counter": CounterMetricFamily,
            "gauge": GaugeMetricFamily,
            "histogram": HistogramMetricFamily,
        }[kind]
        self._families[name] = cls(
            f"callboard_{name}", text[0].upper() + text[1:], labels=("system", *labels)
        )

    def add(self, name: str, value: float, *labels: str) -> None:
        """Add a sample."""
        self._families[name].add_metric([*map(sendable, labels)], value)

    def add_times(
        self, prefix: str, times: tuple[TimeDistribution, TimeDistribution], *labels: str
    ) -> None:
        """Add the histograms of processing times, and of times in mailboxes."""
        for (name, _), one in zip(_TIMES, times, strict=True):
            buckets = [(str(bound / 1e9), float(one.at_most(bound))) for bound in _BOUNDS]
            buckets.append(("+Inf", float(one.count)))
            names = [*map(sendable, labels)]
            self._families[prefix + name].add_metric(names, buckets, one.total_ns / 1e9)

    def add_all(self, metrics: Iterable[tuple[str, str, str]], values: Any, *labels: str) -> None:
        """Add a sample to each of several metrics."""
        for (name, _, _), value in zip(metrics, values, strict=True):
            self.add(name, value, *labels)

    def all(self) -> list[Metric]:
        """Return all metrics. Those without samples make their names known."""
        return list(self._families.values())


class _Source:
    """The figures of one system. Its counters never fall, although actors and runs end."""

    def __init__(self, system: ActorSystem, patterns: list[str]) -> None:
        self._system = weakref.ref(system)
        self._patterns = patterns
        self._scan = ActorScan(system._runtime)
        self._classes: dict[type, ClassTotals] = {}
        self._runs: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
        self._operators: dict[str, list[float]] = {}
        self._rows: Counter[str] = Counter()
        self._lock = threading.Lock()
        self._ended: deque[EndedGraph] = deque()  # their last figures are to be counted
        self._scan.count_ended()
        system._observer.count_ends(self)

    def add_to(self, families: _Families) -> None:
        system = self._system()
        if system is None or (runtime := system._runtime).closed:
            return
        name = runtime.name
        self._scan.add_to(self._classes)
        by_label: dict[str, list[float]] = {}
        for cls, one in self._classes.items():
            _merge(by_label.setdefault(cls.__qualname__, [0.0] * len(_ACTORS)), one)
        for label, values in by_label.items():
            families.add_all(_ACTORS, values, name, label)
        for label, times in runtime.class_times.items():
            families.add_times("", times.read(), name, label)
        for worker in runtime.team.everyone:
            figures = worker.dispatches, worker.waited_ns / 1e9, worker.waits
            families.add_all(_WORKERS, figures, name, worker.name)
        for reason, count in runtime.dead_letters.reasons.items():
            families.add("dead_letters", count, name, reason)
        families.add("failures", runtime.dead_letters.failure_count, name)
        for process in system._observer.processes():
            work = process.done, process.busy, process.sent, process.received
            of_process = *work, process.waiting, process.ends
            families.add_all(_PROCESSES, of_process, name, process.name)
        with self._lock:
            self._add_runs(system, families, name)
        for path, ref in self._named(runtime) if self._patterns else ():
            figures = ref._messages, ref._busy_ns / 1e9, ref._queue_length or 0
            families.add_all(_NAMED, figures, name, path)
            own = ref._own_times()
            if own is not None:
                families.add_times("actor_", own, name, path)

    def note_end(self, graph: EndedGraph) -> None:
        """Count a run that has ended, before it is collected. Any thread."""
        self._ended.append(graph)
        if self._lock.acquire(blocking=False):  # otherwise a scrape does it
            try:
                self._count_ended()
            finally:
                self._lock.release()

    def _count_ended(self) -> None:
        """Count the runs that have ended, except those whose workers still have to count."""
        for _ in range(len(self._ended)):
            graph = self._ended.popleft()
            if graph.is_anybody_at_work():
                self._ended.append(graph)
            else:
                self._count(graph)

    def _count(self, graph: RunningGraph) -> dict[str, Any]:
        """Count a run's work since the last time, and return its figures."""
        before = self._runs.get(graph, {})
        now = self._runs[graph] = graph.figures()
        for kind in ("rows", "skipped", "late", "unpaired"):
            self._rows[kind] += now[kind] - before.get(kind, 0)
        olds = iter(before.get("operators", ()))
        for one in now["operators"]:
            old: dict[str, Any] = next(olds, {})
            total = self._operators.setdefault(one["name"], [0.0] * len(_OPERATORS))
            for i, key in enumerate(("rows_in", "rows_out", "busy")):
                total[i] += max(one[key] - old.get(key, 0), 0)  # some are estimates
        return now

    def _named(self, runtime: Runtime) -> Iterator[tuple[str, ActorRef[Any]]]:
        """Yield the actors that match the patterns. Each path is one series."""
        seen = set()
        for ref, path in actors_and_paths(runtime):
            if path not in seen and any(fnmatchcase(path, one) for one in self._patterns):
                seen.add(path)
                yield path, ref

    def _add_runs(self, system: ActorSystem, families: _Families, name: str) -> None:
        for values in self._operators.values():
            values[3:] = 0.0, 0.0  # the gauges
        for run in system._observer.graphs():
            for one in self._count(run)["operators"]:
                gauges = self._operators[one["name"]]
                gauges[3] += one["queued"]
                gauges[4] += one["workers"]
        self._count_ended()
        for operator, values in self._operators.items():
            families.add_all(_OPERATORS, values, name, operator)
        families.add("run_rows", self._rows["rows"], name)
        for kind in ("skipped", "late", "unpaired"):
            families.add("run_rows_dropped", self._rows[kind], name, kind)


def _merge(into: list[float], one: ClassTotals) -> None:
    """Add a class's figures to those of its name: classes may share one."""
    figures = one.live, one.messages, one.busy_ns / 1e9, one.queued, one.longest, one.dropped
    for i, value in enumerate(figures):
        into[i] = max(into[i], value) if i == 4 else into[i] + value
