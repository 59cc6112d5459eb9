"""The work of a team between two readings: workers and rows by their counters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from callboard.scheduling.elasticity.work_counts import WorkCounts, WorkDone


class Busy:
    handled = waited_ns = 0
    thread = None


@dataclass(eq=False)
class Operator:
    name: str
    cost: float
    taken: int = 0
    queued: float = 0.0
    max_workers: int = 1
    busy: float = 0.0

    def take(self, rows: int, times: float = 1.0) -> None:
        """Take rows in; each takes so many times its cost."""
        self.taken += rows
        self.busy += times * self.cost * rows


@dataclass(eq=False)
class Graph:
    stages: list[Operator]
    parts: list[list[tuple[int, float]]] = field(default_factory=lambda: [[], []])
    admitted: int = 32
    done: int = 0
    held_back_ns: int = 0

    def operators(self) -> list[tuple[int, Operator]]:
        return list(enumerate(self.stages))

    def partitions(self, number: int) -> list[tuple[int, float]]:
        return self.parts[number]


class Team:
    def __init__(self, *graphs: Graph) -> None:
        self.workers = (Busy(), Busy())
        self.started = 1
        self.graphs = graphs

    def following(self) -> tuple[Graph, ...]:
        return self.graphs


def costly_and_cheap() -> tuple[Graph, Operator, Operator]:
    costly, cheap = Operator("costly", 1e-3), Operator("cheap", 1e-6)
    return Graph([costly, cheap]), costly, cheap


def look(counts: WorkCounts, team: Team) -> WorkDone:
    subject: Any = team
    return counts.take(subject)


def test_a_worker_that_was_added_is_busy_from_then_on() -> None:
    counts, team = WorkCounts(), Team()
    look(counts, team)
    team.started = 2
    subject: Any = team
    counts.add_new_workers(subject)
    counted = look(counts, team)
    assert counted.busy == pytest.approx(2 * counted.seconds)


def test_the_busiest_partition_is_its_share_of_the_rows() -> None:
    graph, _, _ = costly_and_cheap()
    counts, team = WorkCounts(), Team(graph)
    for parts, share in (([], 0.0), ([(0, 0.0)], 0.0), ([(6, 0.0), (2, 0.0)], 0.75)):
        graph.parts[0] = parts
        assert look(counts, team).stages[0].busiest == share


def test_the_same_work_counts_the_same_in_any_order() -> None:
    graph, costly, cheap = costly_and_cheap()
    counts, team = WorkCounts(), Team(graph)
    rows = []
    for period in range(60):
        costly.take(100)
        if period % 3 == 2:
            cheap.take(300)  # all that was on its way, at once
            graph.done += 3
        graph.admitted = period + 3
        rows.append(look(counts, team).rows)
    later = rows[4:]  # of them some before the proportions are known, and more after
    assert max(later) < 1.01 * min(later)


def test_rows_are_counted_together_and_noise_in_their_costs_is_evened_out() -> None:
    graph, costly, cheap = costly_and_cheap()
    counts, team = WorkCounts(), Team(graph)
    for period in range(10):
        costly.take(100, times=9.0 if period == 3 else 1.0)
        cheap.take(50)
        graph.done += 1
        graph.admitted = graph.done
        assert look(counts, team).rows == pytest.approx(150)


def test_costs_that_all_rise_change_nothing() -> None:
    graph, costly, cheap = costly_and_cheap()
    counts, team = WorkCounts(), Team(graph)
    rows = []
    for period in range(10):
        for operator in (costly, cheap):
            operator.take(100, times=1.0 if period < 5 else 3.0)
        graph.done += 1
        rows.append(look(counts, team).rows)
    assert rows == [pytest.approx(200)] * 10


def test_a_cost_that_rises_changes_little_though_the_first_look_came_too_early() -> None:
    graph, costly, cheap = costly_and_cheap()
    cheap.cost = costly.cost / 20
    counts, team = WorkCounts(), Team(graph)
    rows = []
    for period in range(600):
        cheap.take(3_200 if period == 0 else 100)  # so 31 rounds are on their way
        costly.take(100, times=1.0 if period < 300 else 2.0)
        graph.done += 1
        graph.admitted = graph.done + 31
        rows.append(look(counts, team).rows)
    assert max(rows[1:]) < 1.1 * min(rows[1:])


def test_rows_of_stages_whose_time_is_not_known_count_as_one() -> None:
    graph, costly, _ = costly_and_cheap()
    costly.taken, costly.queued = 7, 5.0
    counts, team = WorkCounts(), Team(graph)
    counted = look(counts, team)
    assert counted.rows == pytest.approx(7)
    assert counted.waiting == counted.backlog == 5.0
    graph.stages[1].take(100)
    costly.taken += 10
    assert look(counts, team).rows == pytest.approx(110)  # also where others' is known


def test_time_without_rows_is_not_charged() -> None:
    graph, costly, cheap = costly_and_cheap()
    costly.busy = 0.1  # for rounds without rows
    cheap.take(10)
    assert look(WorkCounts(), Team(graph)).rows == pytest.approx(10)


def test_waiting_rows_have_a_cost() -> None:
    graph, costly, cheap = costly_and_cheap()
    counts, team = WorkCounts(), Team(graph)
    for operator in (costly, cheap):
        operator.take(1_000)
        operator.queued = 100.0
    graph.done = 16
    counted = look(counts, team)
    assert [stage.waiting for stage in counted.stages] == [100.0, 100.0]
    assert counted.waiting == 200.0
    assert counted.backlog == pytest.approx(200)
    costly.queued = 0.0
    counted = look(counts, team)
    assert counted.waiting == 100.0
    assert counted.backlog < 1.0


def test_the_graph_whose_senders_wait_longest_counts() -> None:
    graphs = [costly_and_cheap()[0] for _ in range(2)]
    counts, team = WorkCounts(), Team(*graphs)
    assert look(counts, team).held_back == 0.0
    graphs[0].held_back_ns, graphs[1].held_back_ns = 10**9, 3 * 10**9
    assert look(counts, team).held_back == 3.0
    graphs[0].held_back_ns += 2 * 10**9
    assert look(counts, team).held_back == 2.0
    assert look(counts, team).held_back == 0.0
