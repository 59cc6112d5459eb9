"""Random graphs in actor systems: exactly the outputs of the sequential run."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.streams import RowCounts, Run, entry
from callboard.testing import ManualSystem
from tests.streams.outcomes import in_sequence, in_system, move_operators, outcome_of
from tests.streams.random_graphs import Case, cases, chains, fragile_chains, rows
from tests.streams.shapes import Chain, plain

policies = st.sampled_from(
    ["queue_size_throttling", "last_in_pipeline", "estimated_time", "current_throughput"]
)
options = st.fixed_dictionaries(
    {
        "policy": policies,
        "batch_size": st.sampled_from([1, 2, 7, 256]),
        "window": st.sampled_from([1, 2, 4, 16]),
    }
)


def feed(run: Run[Any], case: Case) -> Any:
    """Send what arrives, and return the result. A run that stands still is an error."""
    for turn, (name, arriving) in enumerate(case.inputs):
        run.send(name, arriving, timeout=60)
        move_operators(run, turn)
    return run.finish(timeout=60)


def counted(counts: RowCounts) -> Any:
    """Make comparable what was counted, and with it what is known of each failure."""
    failures = [(f.operator, f.serial, repr(f.row), repr(f.error)) for f in counts.failures]
    return counts.skips, counts.lates, sorted(failures)


def check_under_seed(case: Case, options: dict[str, Any], seed: int) -> None:
    counts = RowCounts(kept=10_000)
    expected = case.graph.run_sequentially(case.inputs, row_counts=counts)
    with ManualSystem(seed) as system:
        run = system.run(case.graph, **options)
        run.row_counts.kept = 10_000
        assert feed(run, case) == expected
        assert counted(run.row_counts) == counted(counts)


@given(cases(awaits=True), options, st.integers(0, 10_000))
def test_any_interleaving_is_sequential(case: Case, options: dict[str, Any], seed: int) -> None:
    check_under_seed(case, options, seed)


@given(cases(awaits=True), options, st.integers(1, 4))
def test_threads_equal_a_sequential_run(case: Case, options: dict[str, Any], workers: int) -> None:
    counts = RowCounts(kept=10_000)
    expected = case.graph.run_sequentially(case.inputs, row_counts=counts)
    with ActorSystem(workers=workers) as system:
        run = system.run(case.graph, **options)
        run.row_counts.kept = 10_000
        assert feed(run, case) == expected
        assert counted(run.row_counts) == counted(counts)


@given(
    chains(awaits=True),
    rows,
    options,
    st.lists(st.integers(0, 20), max_size=40),
    st.integers(0, 10_000),
)
def test_in_any_interleaving_a_cancelled_run_has_put_out_a_beginning(
    chain: Chain, rows: list[Any], options: dict[str, Any], steps: list[int], seed: int
) -> None:
    expected, _ = outcome_of(chain, in_sequence(rows, 256))
    seen: list[Any] = []
    with ManualSystem(seed) as system:
        run = system.run(chain.add_to(entry("rows")).to(seen.append), **options)
        for row, count in zip(rows, steps, strict=False):
            run.send("rows", [row])
            for _ in range(count):
                system.step()
        run.cancel()
        system.run_until_idle()
    assert plain(seen) == plain(expected)[: len(seen)]


@given(chains(awaits=True), rows, options, st.integers(0, 40), st.integers(1, 3))
def test_on_threads_a_cancelled_run_has_put_out_a_beginning(
    chain: Chain, rows: list[Any], options: dict[str, Any], sent: int, workers: int
) -> None:
    expected, _ = outcome_of(chain, in_sequence(rows, 256))
    seen: list[Any] = []
    with ActorSystem(workers=workers) as system:
        run = system.run(chain.add_to(entry("rows")).to(seen.append), **options)
        for row in rows[:sent]:
            run.send("rows", [row])
        run.cancel(timeout=60)
    assert plain(seen) == plain(expected)[: len(seen)]


@given(fragile_chains(awaits=True), rows, options, st.integers(0, 10_000))
def test_in_any_interleaving_a_run_fails_as_the_sequential_run(
    chain: Chain, rows: list[Any], options: dict[str, Any], seed: int
) -> None:
    expected = outcome_of(chain, in_sequence(rows, 256))
    assert outcome_of(chain, in_system(ManualSystem(seed), rows, options)) == expected


@given(fragile_chains(awaits=True), rows, options, st.integers(1, 4))
def test_on_threads_a_run_fails_as_the_sequential_run(
    chain: Chain, rows: list[Any], options: dict[str, Any], workers: int
) -> None:
    expected = outcome_of(chain, in_sequence(rows, 256))
    assert outcome_of(chain, in_system(ActorSystem(workers=workers), rows, options)) == expected
