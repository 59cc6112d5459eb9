"""Random graphs: the same outputs whatever the size of batches, and those of the model."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from callboard.streams import Watermark, entry
from tests.streams.kinds import Op
from tests.streams.model import model_of
from tests.streams.outcomes import in_sequence, outcome_of
from tests.streams.random_graphs import Case, cases, chains, fragile_chains, rows
from tests.streams.shapes import Chain, plain


@given(chains(), rows, st.integers(1, 50))
@example(  # at the end, watermarks() is behind the watermark that came
    Chain((Op("stateful"), Op("watermarks", size=1, step=1), Op("stateful"))), [Watermark(39)], 1
)
def test_a_graph_equals_its_model_row_by_row(chain: Chain, rows: list[Any], size: int) -> None:
    model = model_of(chain)
    expected = [out for row in rows for out in model.push(row)] + model.final()
    graph = chain.add_to(entry("rows")).collect()
    outputs = graph.run_sequentially({"rows": rows}, batch_size=size)
    assert plain(outputs) == plain([out for out in expected if not isinstance(out, Watermark)])


@given(cases())
def test_the_size_of_batches_makes_no_difference(case: Case) -> None:
    by_row = case.graph.run_sequentially(case.inputs, batch_size=1)
    for size in (3, 256):
        assert case.graph.run_sequentially(case.inputs, batch_size=size) == by_row


@given(fragile_chains(), rows)
def test_a_failing_run_fails_at_the_same_input(chain: Chain, rows: list[Any]) -> None:
    by_row = outcome_of(chain, in_sequence(rows, 1))
    assert outcome_of(chain, in_sequence(rows, 3)) == by_row
    assert outcome_of(chain, in_sequence(rows, 256)) == by_row
