"""Feeds a partition's batches to an entry point, and yields its answers in order."""

from __future__ import annotations

import hashlib
import inspect
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from time import monotonic
from typing import Any, Literal, NoReturn, TypeAlias, TypedDict

from callboard import ActorSystem, Future, Recipient
from callboard.core.checks import flag, one_of, seconds, whole
from callboard.core.errors import AskTimeout, ConfigError, DrainTimeout
from callboard.core.text import safe_repr
from callboard.failures import FailureReport
from callboard.recipient import is_recipient, path_of
from callboard.spark.context import PartitionContext, PartitionEnd, PartitionStart
from callboard.spark.tasks.counters import Counting, TaskCounters, check_counters, counted
from callboard.spark.tasks.host import GraphSpec, TaskGraph, task_graph
from callboard.spark.tasks.pickling import name_of, pickle_for_tasks
from callboard.spark.tasks.settings import SystemSettings, Workers


class PartitionOptions(TypedDict, total=False):
    """The options of all partition functions.

    Args:
        entry: The name of the entry point, if `build` returns several.
        in_flight: The most batches that the entry point may not have answered; 4 by default. This
            bounds the memory of waiting batches.
        flush: Ask the entry point `PartitionEnd` after the last batch.
        lifetime: With "task", the default, each task builds the graph again, with new actors. With
            "process", the graph is kept for the next task of the same worker process with the same
            build function. The entry point is then asked `PartitionStart` before the first batch of
            each task, at which the actors themselves must forget the last partition.
        workers: The number of the actor system's workers, by default the task's CPUs. An elastic
            number, "elastic" or a range, never exceeds the task's CPUs.
        drain_timeout: How many seconds one batch may take, and draining at the end; 300 by default.
        config: The system's configuration: a dict, or the path of a TOML file, which the driver
            reads.
        counters: TaskCounters that count the tasks' work for the driver.
    """

    entry: str | None
    in_flight: int
    flush: bool
    lifetime: Literal["task", "process"]
    workers: Workers | None
    drain_timeout: float
    config: Any
    counters: TaskCounters | None


_DEFAULTS: PartitionOptions = {
    "entry": None,
    "in_flight": 4,
    "flush": False,
    "lifetime": "task",
    "workers": None,
    "drain_timeout": 300.0,
    "config": None,
    "counters": None,
}


Entries: TypeAlias = "Recipient[Any] | Mapping[str, Recipient[Any]]"
Build: TypeAlias = Callable[[ActorSystem, PartitionContext], Entries]

_POLL = 0.5  # seconds between checks for a failed actor while an answer is awaited


class Feed:
    """Asks an entry point batch after batch, a few ahead; made on the driver, used in tasks.

    Each batch is an ask, even without results. The answer means that the batch was handled, so a
    bound of the open asks bounds the memory, and failures come back.
    """

    def __init__(self, build: Build, options: PartitionOptions) -> None:
        if not callable(build):
            raise ConfigError(f"build expects a function, got {build!r} ({type(build).__name__})")
        check_takes_two(build)
        for name in options:
            one_of("an option of a partition function", name, tuple(_DEFAULTS), error=ConfigError)
        given: PartitionOptions = {**_DEFAULTS, **options}
        entry = given["entry"]
        if entry is not None and not isinstance(entry, str):
            raise ConfigError(
                f"entry expects an entry point's name or None, got {safe_repr(entry)}"
            )
        self._in_flight = whole("in_flight", given["in_flight"], error=ConfigError)
        self._enough = max(1, self._in_flight // 2)
        timeout = seconds("drain_timeout", given["drain_timeout"], zero=False, error=ConfigError)
        self._flush = flag("flush", given["flush"], error=ConfigError)
        lifetime = one_of("lifetime", given["lifetime"], ("task", "process"), error=ConfigError)
        keep = lifetime == "process"
        settings = SystemSettings.read(given["config"], given["workers"])
        pickled = pickle_for_tasks(name_of(build), build, keep=keep)
        key = hashlib.sha256(pickled + repr(entry).encode()).digest() if keep else None
        self._spec = GraphSpec(partial(_build, build, entry), key, settings, timeout)
        self._counters = check_counters(given["counters"])
        self._name = name_of(build) if entry is None else entry

    def outputs(
        self, batches: Iterable[Any], outputs_of: Callable[[Any], Iterable[Any]]
    ) -> Iterator[Any]:
        """Yield the contents of the entry point's answers, in the batches' order."""
        with counted(self._counters, self._name) as counting:
            if counting is None:
                yield from chain.from_iterable(map(outputs_of, self.answers(batches)))
                return
            answers = self.answers(counting.reading(batches, in_lists=True), counting)
            yield from counting.giving(chain.from_iterable(map(outputs_of, answers)))

    def answers(self, batches: Iterable[Any], counting: Counting | None = None) -> Iterator[Any]:
        """Yield the entry point's answer to each batch, in the batches' order."""
        context = PartitionContext.current()
        with task_graph(self._spec, context) as graph:
            if counting is not None:
                counting.watch(graph.system)
            asked: deque[Future[Any]] = deque()
            if self._spec.key is not None:
                self._answer(graph, graph.built.ask(PartitionStart(context)))
            for batch in batches:
                if len(asked) == self._in_flight:
                    # Several for each wait: otherwise this thread and the worker would pass the
                    # interpreter to and fro for every batch.
                    for _ in range(self._enough):
                        yield self._answer(graph, asked.popleft())
                graph.check()
                asked.append(graph.built.ask(batch))
            if self._flush:
                asked.append(graph.built.ask(PartitionEnd(context)))
            while asked:
                yield self._answer(graph, asked.popleft())
            graph.drain(self._spec.drain_timeout)

    def _answer(self, graph: TaskGraph[Recipient[Any]], asked: Future[Any]) -> Any:
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
                graph.fail(f"actor {path_of(graph.built)!r}", FailureReport.of(error))
            return asked.result()

    def _fail_stuck(self, graph: TaskGraph[Recipient[Any]]) -> NoReturn:
        graph.drain(0.0)  # raises, and names the stuck actor, unless none is working
        name = getattr(graph.built, "name", "")
        raise DrainTimeout(
            f"entry point {name!r} has not answered a batch for {self._spec.drain_timeout} seconds"
        ) from None


def check_takes_two(build: Callable[..., Any]) -> None:
    """Raise ConfigError unless a build function can be called with a system and a context."""
    try:
        signature = inspect.signature(build)
    except (TypeError, ValueError):  # it is not written in Python, so its parameters are unknown
        return
    try:
        signature.bind(None, None)
    except TypeError as error:
        raise ConfigError(
            f"build is called as build(system, context), and {name_of(build)}{signature} is not: "
            f"{error}"
        ) from None


def _build(
    build: Build, entry: str | None, system: ActorSystem, context: PartitionContext
) -> Recipient[Any]:
    return entry_point(build(system, context), entry)


def entry_point(built: Entries, name: str | None) -> Recipient[Any]:
    """Return the part called `name` of a build function's result; raise ConfigError."""
    if is_recipient(built):
        entries: Mapping[str, Recipient[Any]] = {getattr(built, "name", "entry"): built}
    elif isinstance(built, Mapping) and all(map(is_recipient, built.values())):
        entries = built
    else:
        raise ConfigError(
            "build must return a ref or another recipient, or a dict of names and these, got "
            f"{built!r} ({type(built).__name__})"
        )
    if name is None and len(entries) == 1:
        (only,) = entries.values()
        return only
    if name is None:
        raise ConfigError(f"build returned {_list(entries)}: choose one with entry=")
    if name not in entries:
        raise ConfigError(f"no entry point {name!r}: build returned {_list(entries)}")
    return entries[name]


def _list(entries: Mapping[str, Any]) -> str:
    return "no entry point" if not entries else "entry points " + ", ".join(map(repr, entries))
