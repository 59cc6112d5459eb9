"""Comparisons of runs in worker processes with sequential runs, and settings for random ones."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

from hypothesis import HealthCheck, settings

from callboard import ActorSystem
from callboard.streams import Graph, RowCounts
from tests.streams.cutting import run_in_parts
from tests.streams.in_processes import LIMIT
from tests.streams.outcomes import in_sequence, outcome_of
from tests.streams.random_graphs import Case
from tests.streams.shapes import Chain
from tests.streams.test_random_runs import counted, feed

with_fixtures = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
of_few = settings(with_fixtures, max_examples=max(5, settings().max_examples // 3))


def check_graph(system: ActorSystem, case: Case, options: dict[str, Any]) -> None:
    """Check that a graph has the results and the counts of a sequential run."""
    counts = RowCounts(kept=10_000)
    expected = case.graph.run_sequentially(case.inputs, row_counts=counts)
    made = system.run(case.graph, **options)
    made.row_counts.kept = 10_000
    assert feed(made, case) == expected
    assert counted(made.row_counts) == counted(counts)


def check_failures(
    system: ActorSystem, chain: Chain, rows: list[Any], options: dict[str, Any]
) -> None:
    """Check that a chain whose functions raise fails where a sequential run does."""

    def by_system(graph: Graph[Any]) -> None:
        made = system.run(graph, **options)
        for row in rows:  # one by one, so that some are sent after the failure
            made.send("rows", [row], timeout=LIMIT)
        made.finish(timeout=LIMIT)

    assert outcome_of(chain, by_system) == outcome_of(chain, in_sequence(rows, 256))


def check_parts(
    systems: list[ActorSystem],
    first: int,
    case: Case,
    cuts: list[int],
    options: list[dict[str, Any]],
) -> None:
    """Check a run that is cut into parts: each is in the next system, from the snapshot before."""
    expected = case.graph.run_sequentially(case.inputs)
    got = run_in_parts(
        case.graph,
        case.inputs,
        cuts,
        lambda part: nullcontext(systems[(first + part) % len(systems)]),  # type: ignore[arg-type,return-value]
        options,
    )
    assert got == expected
