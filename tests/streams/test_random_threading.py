"""Random graphs under every threading model, and mixtures: what the sequential run gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard import ActorSystem
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.testing import ManualSystem
from tests.streams.outcomes import in_sequence, in_system, outcome_of
from tests.streams.random_graphs import Case, cases, fragile_chains, rows
from tests.streams.shapes import Chain
from tests.streams.test_random_runs import check_under_seed, feed

options = st.fixed_dictionaries(
    {
        "threading": st.sampled_from(MODELS),
        "batch_size": st.sampled_from([1, 2, 7, 256]),
        "window": st.sampled_from([1, 2, 4, 16]),
    }
)


@pytest.mark.parametrize("model", MODELS)
@given(data=st.data(), seed=st.integers(0, 10_000))
@settings(max_examples=30)
def test_a_graph_by_any_model_is_sequential(model: Model, data: st.DataObject, seed: int) -> None:
    case = data.draw(cases(awaits=model != "manual"))  # a thread of a manual system cannot wait
    expected = case.graph.run_sequentially(case.inputs)
    with ManualSystem(seed) as system:
        assert feed(system.run(case.graph, threading=model, batch_size=3), case) == expected


@given(cases(marked=True), options, st.integers(0, 10_000))
def test_a_graph_of_several_models_gives_the_outputs_of_the_sequential_run(
    case: Case, options: dict[str, Any], seed: int
) -> None:
    check_under_seed(case, options, seed)


@pytest.mark.parametrize("model", MODELS)
@given(case=cases(marked=True, awaits=True), options=options, workers=st.integers(1, 3))
def test_threads_of_several_models_give_the_outputs_of_the_sequential_run(
    model: Model, case: Case, options: dict[str, Any], workers: int
) -> None:
    expected = case.graph.run_sequentially(case.inputs)
    with ActorSystem(workers=workers) as system:
        run = system.run(case.graph, **{**options, "threading": model})
        assert feed(run, case.row_by_row()) == expected  # in more rounds than a window has


@given(fragile_chains(marked=True), rows, options, st.integers(0, 10_000))
def test_a_run_by_any_models_fails_as_the_sequential_run(
    chain: Chain, rows: list[Any], options: dict[str, Any], seed: int
) -> None:
    expected = outcome_of(chain, in_sequence(rows, 256))
    assert outcome_of(chain, in_system(ManualSystem(seed), rows, options)) == expected


@given(fragile_chains(marked=True), rows, options, st.integers(1, 3))
def test_threads_of_any_models_fail_as_the_sequential_run(
    chain: Chain, rows: list[Any], options: dict[str, Any], workers: int
) -> None:
    expected = outcome_of(chain, in_sequence(rows, 256))
    assert outcome_of(chain, in_system(ActorSystem(workers=workers), rows, options)) == expected
