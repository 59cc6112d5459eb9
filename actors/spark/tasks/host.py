"""The actor system of a Spark worker process, and its tasks' graphs.

Spark reuses a worker process for one task after the other and ends it at any moment, without
`atexit`, `finally` or `__del__`. So the system is made when the first task needs it, never at
import; it is found by the process's id; and nothing in it needs to be saved.

A task's graph is built for that task and stopped with it. So each task, and each attempt at a task,
begins with fresh actors. A graph with a key is kept for the next task with the same key, unless its
task failed or was abandoned.

If a task runs a second graph beside the first, as `outer(inner(rows))` does, that graph gets its
own system, which ends with it. So neither waits for an actor that is stuck in the other.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Generic, NoReturn, TypeVar

from callboard import ActorSystem
from callboard.core.errors import CallboardError, DrainTimeout
from callboard.core.log import log
from callboard.failures import FailureReport
from callboard.spark.context import PartitionContext
from callboard.spark.errors import PartitionFailed
from callboard.spark.tasks.settings import SystemSettings

T = TypeVar("T")

# Waiting rows make the garbage collector run every few hundred rows, and scan all waiting rows
# without finding garbage. While a task is fed, it runs only after this many more objects.
_GC_THRESHOLD = 50_000

_GRACE = 1.0  # seconds that actors have to stop when their answers are not needed any more


@dataclass(frozen=True)
class GraphSpec(Generic[T]):
    """How to make a task's graph, and the system for it if the process has none yet."""

    build: Callable[[ActorSystem, PartitionContext], T]
    key: bytes | None
    settings: SystemSettings
    drain_timeout: float


class TaskGraph(Generic[T]):
    """The actors of a task; `built` is an entry point, or a run."""

    def __init__(self, host: Host, built: T, context: PartitionContext) -> None:
        self.built = built
        self.context = context
        self._host = host

    @property
    def system(self) -> ActorSystem:
        """The system that its actors live in."""
        return self._host.system

    def check(self) -> None:
        """Raise PartitionFailed if an actor failed, and was neither resumed nor restarted."""
        for actor, error in self._host.system.dead_letters.fatal:
            self.fail(f"actor {actor!r}", error)

    def fail(self, who: str, error: FailureReport, where: str = "") -> NoReturn:
        """Raise PartitionFailed for an exception of an actor or an operator."""
        raise PartitionFailed(who, error, self.context.partition_id, where) from None

    def drain(self, timeout: float) -> None:
        """Wait until nothing is in flight; raise PartitionFailed or DrainTimeout."""
        try:
            self._host.system.drain(timeout)
        finally:
            self.check()  # first, because an actor may hang for a failed one's answer


class Host:
    """An actor system and the graph that lives in it; used by the process's task thread only."""

    def __init__(self, settings: SystemSettings) -> None:
        self.pid = os.getpid()
        self.settings = settings
        assert settings.workers is not None
        self.system = ActorSystem("spark", workers=settings.workers, config=settings.config)
        self.is_idle = True
        self._kept: tuple[bytes, Any] | None = None

    def drop_kept(self, spec: GraphSpec[T]) -> bool:
        """Stop the kept graph, unless it is this one.

        Returns False if it failed: the next task then needs another system.
        """
        if self._kept is None or self._kept[0] == spec.key:
            return True
        self._kept = None
        try:
            self._stop_actors(_GRACE)
        except DrainTimeout as error:
            log.warning("a kept graph did not end", error=error)
            return False
        for actor, failure in self.system.dead_letters.fatal:
            log.warning("a kept graph failed at its end", actor=actor, error=failure)
        return not self.system.dead_letters.fatal

    def open(self, spec: GraphSpec[T], context: PartitionContext) -> TaskGraph[T]:
        """Build a graph, or take the kept one, which has the same key."""
        kept, self._kept = self._kept, None
        built = kept[1] if kept is not None else spec.build(self.system, context)
        self.is_idle = False
        return TaskGraph(self, built, context)

    def close(self, graph: TaskGraph[T], spec: GraphSpec[T]) -> None:
        """End a graph's part in a task: its actors are kept or stopped."""
        if spec.key is not None and self is _host:
            self._kept = (spec.key, graph.built)
        else:
            self._stop_actors(spec.drain_timeout)
            graph.check()  # an `on_stop` may have failed
        self._leave()

    def abandon(self) -> None:
        """End an abandoned graph's part in a task: stuck threads are left behind."""
        try:
            self._stop_actors(_GRACE)
        except CallboardError:  # nobody waits for the error
            self.dispose(grace=0.0)  # stuck threads have had their time
        else:
            self._leave()

    def _leave(self) -> None:
        self.is_idle = True
        if self is not _host:
            self.dispose()

    def _stop_actors(self, timeout: float) -> None:
        for ref in self.system.actors:
            ref.stop()
        if not self.system.join(timeout):
            raise DrainTimeout(
                f"these actors did not stop in {timeout} seconds: {self.system.actors}"
            )

    def dispose(self, grace: float = _GRACE) -> None:
        """Stop the system and forget it, whatever state it is in."""
        global _host
        if _host is self:
            _host = None
        with suppress(CallboardError):
            self.system.stop(timeout=grace)


_host: Host | None = None


def host_for(spec: GraphSpec[T], context: PartitionContext) -> Host:
    """Return this process's host, or one for this graph alone if another graph is open there."""
    global _host
    settings = spec.settings.for_task(context.cpus)
    if _host is not None and _host.pid != os.getpid():
        _host = None  # a forked copy: its threads are the parent's
    if _host is not None and not _host.is_idle:
        return Host(settings)
    if _host is not None and not (_host.settings == settings and _host.drop_kept(spec)):
        _host.dispose()
    if _host is None:
        _host = Host(settings)
    return _host


@contextmanager
def task_graph(spec: GraphSpec[T], context: PartitionContext) -> Iterator[TaskGraph[T]]:
    """Give a task its graph; afterwards nothing of it remains unless it may be kept."""
    host = host_for(spec, context)
    try:
        graph = host.open(spec, context)
        try:
            with _gc_delayed():
                yield graph
        except GeneratorExit:  # the reader of the results has stopped
            host.abandon()
            raise
        host.close(graph, spec)
    except GeneratorExit:
        raise
    except BaseException:
        host.dispose()
        raise


_open_graphs = 0  # graphs that are open
_gc_threshold = gc.get_threshold()  # as it was before the first of them


@contextmanager
def _gc_delayed() -> Iterator[None]:
    global _open_graphs, _gc_threshold
    if _open_graphs == 0:
        _gc_threshold = first, *others = gc.get_threshold()
        if first > 0:
            gc.set_threshold(max(first, _GC_THRESHOLD), *others)
    _open_graphs += 1
    try:
        yield
    finally:
        _open_graphs -= 1
        if _open_graphs == 0:
            gc.set_threshold(*_gc_threshold)
