"""The work of a team between two readings of its counters."""

from __future__ import annotations

import math
import time
import weakref
from dataclasses import dataclass, field

from callboard.scheduling.elasticity.measurement import StageLoad
from callboard.scheduling.elasticity.processors import queued_ns
from callboard.scheduling.elasticity.team_level import LeveledGraph, LeveledTeam, LeveledWorker

_SETTLED = 8
"""With this many finished rounds for each unfinished one, the places of those hardly matter."""


@dataclass
class WorkDone:
    """The work between two looks."""

    seconds: float
    """The time between the looks."""
    messages: int = 0
    busy: float = 0.0
    """The busy seconds of all workers."""
    starved: float = 0.0
    """The busy seconds in which a worker waited for a processor."""
    rows: float = 0.0
    """The input rows of all stages, weighted by their costs: see `_Rows`."""
    waiting: float = 0.0
    """The rows that wait before all stages."""
    backlog: float = 0.0
    """The same rows, weighted by their costs."""
    held_back: float = 0.0
    """The seconds that senders waited for room, in the graph where this was longest."""
    stages: list[StageLoad] = field(default_factory=list)


class _Rows:
    """The input rows of a graph's stages, and their costs."""

    def __init__(self) -> None:
        self.before: dict[int, int] = {}  # input rows at the last look
        self._mix: dict[int, int] = {}  # rows of each stage, whose mean is the mean row
        self._unit = 1.0  # mean rows
        self._is_settled = False

    def costs(
        self, taken: dict[int, int], busy: dict[int, float], done: int, on_their_way: int
    ) -> dict[int, float]:
        """Return the known costs of a row at each stage, as multiples of the cost of a mean row.

        Costs are means of all rows so far. The mean row is that of all stages' rows in constant
        proportions. So nothing changes if all costs rise together, as they do when workers
        interfere with each other, and noise in the cost of a stage is averaged out. The proportions
        are those of the first look after a round is done. They change once, when few rounds are on
        their way compared to those that are done; a row goes on to count the same.
        """
        costs = {place: busy[place] / n for place, n in taken.items() if n and busy[place] > 0}
        if not costs:
            return {}
        now = {place: taken[place] for place in costs}
        if done and not self._mix:
            self._mix = now
        if self._mix and not self._is_settled and done > _SETTLED * on_their_way:
            self._unit = _mean(costs, now) / _mean(costs, self._mix)
            self._mix, self._is_settled = now, True
        mean = _mean(costs, self._mix or now) / self._unit
        return {place: cost / mean for place, cost in costs.items()}


def _mean(costs: dict[int, float], rows: dict[int, int]) -> float:
    return sum(costs[place] * n for place, n in rows.items()) / sum(rows.values())


class WorkCounts:
    """The counters of a team at the last look.

    A stage may take in all rows that are on their way at once, after others have worked on them for
    longer than a period. So the mere number of rows would differ from period to period. Therefore
    the rows of a stage are weighted by its cost: the work of a period is the same in any order.
    """

    def __init__(self) -> None:
        self._handled: dict[LeveledWorker, int] = {}
        self._idle: dict[LeveledWorker, int] = {}
        self._queued: dict[LeveledWorker, int] = {}
        self._rows = weakref.WeakKeyDictionary[LeveledGraph, _Rows]()
        self._held_back = weakref.WeakKeyDictionary[LeveledGraph, int]()
        self._at = time.monotonic_ns()

    def take(self, team: LeveledTeam) -> WorkDone:
        """Return the work since the last call."""
        now = time.monotonic_ns()
        passed, self._at = now - self._at, now
        counted = WorkDone(passed / 1e9)
        for worker in team.workers[: team.started]:
            handled, idle, queued = worker.handled, worker.waited_ns, _queued_ns(worker)
            counted.messages += handled - self._handled.get(worker, 0)
            if worker in self._idle:
                counted.busy += max(0, passed - (idle - self._idle[worker])) / 1e9
                counted.starved += max(0, queued - self._queued.get(worker, queued)) / 1e9
            self._handled[worker], self._idle[worker] = handled, idle
            self._queued[worker] = queued
        for graph in team.following():
            self._add(graph, counted)
        return counted

    def add_new_workers(self, team: LeveledTeam) -> None:
        """Count workers that were just started from now on, instead of from the next look."""
        for worker in team.workers[: team.started]:
            self._idle.setdefault(worker, worker.waited_ns)

    def _add(self, graph: LeveledGraph, counted: WorkDone) -> None:
        waited = graph.held_back_ns
        held_back = waited - self._held_back.get(graph, waited)
        self._held_back[graph] = waited
        counted.held_back = max(counted.held_back, held_back / 1e9)
        rows = self._rows.setdefault(graph, _Rows())
        operators = list(graph.operators())
        taken = {place: view.taken for place, (_, view) in enumerate(operators)}
        busy = {place: view.busy for place, (_, view) in enumerate(operators)}
        done = graph.done
        on_their_way = graph.admitted - done
        costs = rows.costs(taken, busy, done, on_their_way)
        for place, (step, view) in enumerate(operators):
            so_far, cost = taken[place], costs.get(place, 1.0)
            new = so_far - rows.before.get(place, 0)
            # A stage counts rows for each waiting round. In a graph with many entries, few rounds
            # have rows for it.
            waiting = min(view.queued, on_their_way * so_far / done if done else math.inf)
            counted.rows += cost * new
            counted.waiting += waiting
            counted.backlog += cost * waiting
            counted.stages.append(
                StageLoad(
                    name=view.name,
                    rows=new / counted.seconds,
                    cost=view.cost,
                    most_lanes=view.max_workers,
                    busiest=_busiest(graph, step),
                    waiting=waiting,
                )
            )
        rows.before = taken


def _queued_ns(worker: LeveledWorker) -> int:
    number = None if worker.thread is None else worker.thread.native_id
    return 0 if number is None else queued_ns(number)


def _busiest(graph: LeveledGraph, step: int) -> float:
    """Return the part of the rows in the partition with the most; 0 without partitions."""
    rows = [count for count, _ in graph.partitions(step)]
    return max(rows) / sum(rows) if any(rows) else 0.0
