"""Random graphs whose outputs are taken at random moments: those of the sequential run."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.scheduling.flow.threading_models import MODELS
from callboard.streams import Results, Run, StreamError, entry
from callboard.testing import ManualSystem
from tests.streams.random_graphs import Case, cases, fragile_chains, rows
from tests.streams.shapes import Chain

options = st.fixed_dictionaries(
    {
        "threading": st.sampled_from(MODELS),
        "batch_size": st.sampled_from([1, 2, 7, 256]),
        "window": st.sampled_from([1, 2, 16]),
    }
)
moments = st.lists(st.booleans(), max_size=200)


def check_takers(case: Case, run: Run[Any], moments: list[bool]) -> None:
    """Take from all collectors now and then while rows are sent, and the rest afterwards."""
    expected = case.graph.run_sequentially(case.inputs)
    names = case.graph.collectors
    takers: dict[str, Results[Any]] = {name: run.results(name=name) for name in names}
    taken: dict[str, list[Any]] = {name: [] for name in names}
    at = iter(moments)
    for name, arriving in case.row_by_row().inputs:
        run.send(name, arriving)
        for collector, results in takers.items():
            if next(at, False):
                taken[collector] += results.take()
            if results.pending and next(at, False):
                taken[collector].append(next(results))
    left = run.finish()
    left = {names[0]: left} if len(names) == 1 else left
    expected = {names[0]: expected} if len(names) == 1 else expected
    assert {name: taken[name] + left[name] for name in names} == expected
    assert {name: list(results) for name, results in takers.items()} == left


def check_pulled(case: Case, run: Run[Any]) -> None:
    """Have a collector's results send the rows themselves."""
    expected = case.graph.run_sequentially(case.inputs)
    name = case.graph.collectors[-1]
    given: Any = case.inputs
    if len(case.graph.entries) == 1:
        given = [row for _, arriving in case.inputs for row in arriving]
    got = list(run.results(given, name=name))
    left = run.finish()
    if len(case.graph.collectors) == 1:
        assert (got, left) == (expected, [])
    else:
        assert left | {name: got} == expected
        assert left[name] == []


@given(cases(), options, moments, st.integers(0, 10_000))
def test_in_any_interleaving_takers_get_the_outputs_of_the_sequential_run(
    case: Case, options: dict[str, Any], moments: list[bool], seed: int
) -> None:
    with ManualSystem(seed) as system:
        check_takers(case, system.run(case.graph, **options), moments)
    with ManualSystem(seed) as system:
        check_pulled(case, system.run(case.graph, **options))


@given(cases(awaits=True), options, moments, st.integers(1, 3))
def test_on_threads_takers_get_the_outputs_of_the_sequential_run(
    case: Case, options: dict[str, Any], moments: list[bool], workers: int
) -> None:
    with ActorSystem(workers=workers) as system:
        check_takers(case, system.run(case.graph, **options), moments)
        check_pulled(case, system.run(case.graph, **options))


@given(fragile_chains(), rows, options, st.integers(1, 3))
def test_takers_get_what_came_before_a_failure_as_in_the_sequential_run(
    chain: Chain, rows: list[Any], options: dict[str, Any], workers: int
) -> None:
    seen: list[Any] = []
    expected = "no error"
    try:
        chain.add_to(entry("rows")).to(seen.append, name="seen").run_sequentially({"rows": rows})
    except StreamError as error:
        expected = str(error)
    with ActorSystem(workers=workers) as system:
        run = system.run(chain.add_to(entry("rows")).collect(name="seen"), **options)
        got: list[Any] = []
        told = "no error"
        try:
            got.extend(run.results(rows))
        except StreamError as error:
            told = str(error)
    assert (got, told) == (seen, expected)
