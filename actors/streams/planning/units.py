"""Units: which steps of a plan are run together, by whom, under the threading models.

In the model `manual` a thread runs steps one after the other, as plain calls. Which thread is said
by marks in the graph, and where these do not say, by what a step reads:

- a step behind a threaded port is run by that port's thread, as are those after it, up to the next;
- one that reads only entries, and what the caller's thread gave, is run by the caller's thread;
- one that reads what another thread gave, in the same model, is run by that thread: the caller may
  be away, and nothing can wake it;
- one that reads what other models gave is run by a thread of the part of the graph that it is in.

The steps of a thread are one unit where that leaves a graph of units without circles. Where rows go
from a thread to another unit and come back, the thread has two. For that each step has a depth: how
often rows that come to it have changed units, at most. Units of a thread are of one depth, and all
edges between units lead to a greater one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from callboard.scheduling.flow.threading_models import Model
from callboard.streams.planning.plan import Constraint, Step

_CALLER = Constraint()


class _Runner(NamedTuple):
    """The runner of a step: in `manual` a thread, else one that no other step has."""

    model: Model
    of: Constraint | int


@dataclass(frozen=True)
class Unit:
    """Steps that become one stage: several in `manual`, mostly one elsewhere."""

    model: Model
    steps: tuple[int, ...]
    thread: int = 0
    """In `manual`: 0 is the caller's thread, others are counted from 1."""

    @property
    def where(self) -> str:
        """Say in a few words which thread runs it; nothing of `dynamic`, where any worker may."""
        if self.model == "manual":
            return f"manual, thread {self.thread}" if self.thread else "manual, the caller"
        return "" if self.model == "dynamic" else self.model


def units_of(steps: Sequence[Step], default: Model) -> list[Unit]:
    """Find the units of a run whose model is `default`; each comes after those it has rows from."""
    runners: list[_Runner] = []
    depths: list[int] = []
    members: dict[tuple[_Runner, int], list[int]] = {}
    readers: list[list[int]] = [[] for _ in steps]
    for number, step in enumerate(steps):
        for source, _ in step.sources:
            if source is not None:
                readers[source].append(number)
    for number, step in enumerate(steps):
        if step.numbers:
            reading = [steps[each] for each in readers[number]]
            runner = _runner_of_numbering(number, step, reading, runners, default)
        else:
            runner = _runner(number, step, runners, default)
        depth = 0
        for source, _ in step.sources:
            if source is not None:
                depth = max(depth, depths[source] + (runners[source] != runner))
        runners.append(runner)
        depths.append(depth)
        members.setdefault((runner, depth), []).append(number)
    threads = {_CALLER: 0}
    units = []
    for (runner, _), numbers in members.items():
        thread = 0
        if isinstance(runner.of, Constraint):
            thread = threads.setdefault(runner.of, len(threads))
        units.append(Unit(runner.model, tuple(numbers), thread))
    return _in_order(units, steps)


def _runner(number: int, step: Step, before: Sequence[_Runner], default: Model) -> _Runner:
    model = step.model(default)
    if model != "manual":
        return _Runner(model, number)
    if step.constraint.is_port:
        return _Runner(model, step.constraint)
    reads = [None if source is None else before[source] for source, _ in step.sources]
    if all(each is None or each.of is _CALLER for each in reads):
        return _Runner(model, _CALLER)
    for each in reads:
        if each is not None and each.model == "manual" and each.of is not _CALLER:
            return each
    return _Runner(model, step.constraint)


def _runner_of_numbering(
    number: int, step: Step, reading: Sequence[Step], before: Sequence[_Runner], default: Model
) -> _Runner:
    """Return the runner that numbers rows: their maker, or for those of an entry their reader."""
    source = step.sources[0][0]
    if source is not None:
        return before[source] if before[source].model != "dynamic" else _Runner("dynamic", number)
    for reader in reading:
        if reader.model(default) == "manual" and not reader.constraint.is_port:
            return _Runner("manual", _CALLER)
    model = reading[0].model(default)
    return _Runner(model, reading[0].constraint if model == "manual" else number)


def _in_order(units: Sequence[Unit], steps: Sequence[Step]) -> list[Unit]:
    """Put units into an order: each after those it has rows from, else by their first steps."""
    unit_of = {number: at for at, unit in enumerate(units) for number in unit.steps}
    readers: list[set[int]] = [set() for _ in units]
    sources: list[set[int]] = [set() for _ in units]
    for number, at in unit_of.items():
        for source, _ in steps[number].sources:
            if source is not None and unit_of[source] != at:
                readers[unit_of[source]].add(at)
                sources[at].add(unit_of[source])
    missing = [len(each) for each in sources]
    ready = [(unit.steps[0], at) for at, unit in enumerate(units) if not missing[at]]
    heapify(ready)
    ordered = []
    while ready:
        _, at = heappop(ready)
        ordered.append(units[at])
        for reader in readers[at]:
            missing[reader] -= 1
            if not missing[reader]:
                heappush(ready, (units[reader].steps[0], reader))
    return ordered
