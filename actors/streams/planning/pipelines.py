"""Pipelines: the operators of a plan that one thread runs as one stage, by the threading models.

In the model `manual` a thread runs operators one after the other, as plain calls. Marks in the
graph say which thread. Where there is none, the inputs of an operator decide:

- behind a threaded port that port's thread runs it, and all after it, up to the next port;
- the caller's thread runs it if it reads only entries and outputs of the caller's thread;
- another thread runs it if it reads an output of that thread, in the same model: the caller may be
  away, and nothing can wake it;
- behind other models, a thread of the part of the graph that it is in runs it.

The operators of a thread are one pipeline if the graph of pipelines stays free of cycles. Where
rows go from a thread to another pipeline and come back, the thread has two. So each operator has a
depth: how often, at most, the rows that come to it have changed pipelines. The operators of a
pipeline have the same depth, and all edges between pipelines lead to a greater one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from callboard.scheduling.flow.threading_models import Model
from callboard.streams.planning.plan import Constraint, PlannedOperator

_CALLER = Constraint()


class _Runner(NamedTuple):
    """The runner of an operator: in `manual` a thread, else one for this operator alone."""

    model: Model
    of: Constraint | int


@dataclass(frozen=True)
class Pipeline:
    """The numbers of operators that become one stage: several in `manual`, else mostly one."""

    model: Model
    operators: tuple[int, ...]
    thread: int = 0
    """In `manual`: 0 is the caller's thread, others are counted from 1."""

    @property
    def where(self) -> str:
        """Name the thread that runs it; empty in `dynamic`, where any worker may."""
        if self.model == "manual":
            return f"manual, thread {self.thread}" if self.thread else "manual, the caller"
        return "" if self.model == "dynamic" else self.model


def pipelines_of(operators: Sequence[PlannedOperator], default: Model) -> list[Pipeline]:
    """Find the pipelines of a run whose model is `default`. Each follows those that it reads."""
    runners: list[_Runner] = []
    depths: list[int] = []
    members: dict[tuple[_Runner, int], list[int]] = {}
    readers: list[list[int]] = [[] for _ in operators]
    for number, operator in enumerate(operators):
        for source, _ in operator.sources:
            if source is not None:
                readers[source].append(number)
    for number, operator in enumerate(operators):
        if operator.numbers:
            reading = [operators[each] for each in readers[number]]
            runner = _runner_of_numbering(number, operator, reading, runners, default)
        else:
            runner = _runner(number, operator, runners, default)
        depth = 0
        for source, _ in operator.sources:
            if source is not None:
                depth = max(depth, depths[source] + (runners[source] != runner))
        runners.append(runner)
        depths.append(depth)
        members.setdefault((runner, depth), []).append(number)
    threads = {_CALLER: 0}
    pipelines = []
    for (runner, _), numbers in members.items():
        thread = 0
        if isinstance(runner.of, Constraint):
            thread = threads.setdefault(runner.of, len(threads))
        pipelines.append(Pipeline(runner.model, tuple(numbers), thread))
    return _in_order(pipelines, operators)


def _runner(
    number: int, operator: PlannedOperator, before: Sequence[_Runner], default: Model
) -> _Runner:
    model = operator.model(default)
    if model != "manual":
        return _Runner(model, number)
    if operator.constraint.is_port:
        return _Runner(model, operator.constraint)
    reads = [None if source is None else before[source] for source, _ in operator.sources]
    if all(each is None or each.of is _CALLER for each in reads):
        return _Runner(model, _CALLER)
    for each in reads:
        if each is not None and each.model == "manual" and each.of is not _CALLER:
            return each
    return _Runner(model, operator.constraint)


def _runner_of_numbering(
    number: int,
    operator: PlannedOperator,
    reading: Sequence[PlannedOperator],
    before: Sequence[_Runner],
    default: Model,
) -> _Runner:
    """Return the runner that numbers rows: that of their source, or of an entry's first reader."""
    source = operator.sources[0][0]
    if source is not None:
        return before[source] if before[source].model != "dynamic" else _Runner("dynamic", number)
    for reader in reading:
        if reader.model(default) == "manual" and not reader.constraint.is_port:
            return _Runner("manual", _CALLER)
    model = reading[0].model(default)
    return _Runner(model, reading[0].constraint if model == "manual" else number)


def _in_order(
    pipelines: Sequence[Pipeline], operators: Sequence[PlannedOperator]
) -> list[Pipeline]:
    """Sort pipelines: each after those that it reads, else by their first operators."""
    pipeline_of = {each: at for at, pipeline in enumerate(pipelines) for each in pipeline.operators}
    readers: list[set[int]] = [set() for _ in pipelines]
    sources: list[set[int]] = [set() for _ in pipelines]
    for number, at in pipeline_of.items():
        for source, _ in operators[number].sources:
            if source is not None and pipeline_of[source] != at:
                readers[pipeline_of[source]].add(at)
                sources[at].add(pipeline_of[source])
    missing = [len(each) for each in sources]
    firsts = [pipeline.operators[0] for pipeline in pipelines]
    ready = [(firsts[at], at) for at, count in enumerate(missing) if not count]
    heapify(ready)
    ordered = []
    while ready:
        _, at = heappop(ready)
        ordered.append(pipelines[at])
        for reader in readers[at]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, (firsts[reader], reader))
    return ordered
