"""How a partition's batches go to a graph's entry point, and its answers come back in order."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any, Literal, NoReturn

from callboard import Future
from callboard.core.errors import AskTimeout, ConfigError, DrainTimeout
from callboard.dead_letters import FailureReport
from callboard.spark.context import PartitionContext, PartitionEnd, PartitionStart
from callboard.spark.host import Build, Graph, GraphSpec, task_graph
from callboard.spark.pickling import pickle_build

_POLL = 0.5  # seconds between looks for a failed actor while an answer is awaited


class Feed:
    """Asks an entry point batch after batch, a few ahead; made on the driver, used in tasks.

    Each batch is an ask, also where no result is wanted: the answer says that the batch was
    handled, so a bound on the open asks bounds the memory, and a failure comes back by itself.
    """

    def __init__(
        self,
        build: Build,
        *,
        entry: str | None,
        in_flight: int,
        flush: bool,
        lifetime: Literal["task", "process"],
        workers: int | None,
        drain_timeout: float,
        config: Any,
    ) -> None:
        if not callable(build):
            raise ConfigError(f"build must be a function, not {build!r} ({type(build).__name__})")
        at_least_one("in_flight", in_flight)
        if workers is not None:
            at_least_one("workers", workers)
        if not drain_timeout > 0:
            raise ConfigError(f"drain_timeout must be above 0 seconds, not {drain_timeout!r}")
        if lifetime not in ("task", "process"):
            raise ConfigError(f"lifetime must be 'task' or 'process', not {lifetime!r}")
        pickled = pickle_build(build)
        key = None
        if lifetime == "process":
            key = hashlib.sha256(pickled + repr(entry).encode()).digest()
        self._spec = GraphSpec(build, entry, key, workers, config, drain_timeout)
        self._in_flight = in_flight
        self._flush = flush

    def answers(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the entry point's answer to each batch, in the batches' order."""
        context = PartitionContext.current()
        with task_graph(self._spec, context) as graph:
            asked: deque[Future[Any]] = deque()
            if self._spec.key is not None:
                self._answer(graph, graph.entry.ask(PartitionStart(context)))
            for batch in batches:
                if len(asked) == self._in_flight:
                    yield self._answer(graph, asked.popleft())
                graph.check()
                asked.append(graph.entry.ask(batch))
            if self._flush:
                asked.append(graph.entry.ask(PartitionEnd(context)))
            while asked:
                yield self._answer(graph, asked.popleft())
            graph.drain(self._spec.drain_timeout)

    def _answer(self, graph: Graph, asked: Future[Any]) -> Any:
        """Wait for an answer; raise PartitionFailed or DrainTimeout when it does not come."""
        deadline = monotonic() + self._spec.drain_timeout
        while True:
            try:
                error = asked.exception(timeout=_POLL)
            except AskTimeout:
                graph.check()  # an answer that waits for a failed actor would never come
                if monotonic() > deadline:
                    self._fail_stuck(graph)
                continue
            if error is not None:
                graph.check()
                graph.fail(graph.entry.path, FailureReport.of(error))
            return asked.result()

    def _fail_stuck(self, graph: Graph) -> NoReturn:
        graph.drain(0.0)  # raises, and names the actor that is stuck, unless none is at work
        raise DrainTimeout(
            f"entry point {graph.entry.name!r} has not answered a batch for "
            f"{self._spec.drain_timeout} seconds"
        ) from None


def at_least_one(name: str, value: int) -> None:
    """Raise ConfigError unless the value is an integer of at least 1."""
    if not isinstance(value, int) or value < 1:
        raise ConfigError(f"{name} must be an integer of at least 1, not {value!r}")
