"""Laws of random nets under the oracle, and properties of the nets that are drawn."""

from __future__ import annotations

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from callboard.nets.terms.expressions import Unary
from callboard.nets.terms.labels import is_binding
from callboard.nets.terms.network import Choice, Feedback, Net, RecordFilter, Serial, Split, Star
from callboard.nets.terms.patterns import Pattern
from tests.nets.flow import size_of_match
from tests.nets.inference import after, arrows
from tests.nets.oracle import Outcome, Record, counted, is_match, run
from tests.nets.strategies import (
    Drawn,
    chains_with_records,
    nets_of_shape,
    nets_with_records,
    records_of,
)

MOST_STEPS = 20_000
Chain = tuple[Net, Net, Net, list[Record]]


def seen(net: Net, records: list[Record]) -> tuple[list[Record], Any]:
    """Return what can be seen of a run: its outputs in order, and what is left in its cells."""
    outcome = ended_well(net, records)
    return outcome.outputs, counted(outcome.leftovers)


def ended_well(net: Net, records: list[Record]) -> Outcome:
    outcome = run(net, records)
    assert outcome.error is None
    return outcome


@given(nets_with_records())
def test_drawn_nets_take_their_records_and_end(drawn: Drawn) -> None:
    assert ended_well(drawn.net, drawn.records).steps <= MOST_STEPS


@given(nets_with_records(cells=False, starts=False), st.data())
def test_types_tell_the_labels_of_outputs(drawn: Drawn, data: st.DataObject) -> None:
    types = arrows(drawn.net)
    for variant in (variant for variant, _ in types if not any(map(is_binding, variant))):
        record = data.draw(records_of(variant))
        found = after(variant, types)
        assert found is not None
        assert {frozenset(output) for output in ended_well(drawn.net, [record]).outputs} <= found


@given(chains_with_records())
def test_serial_composition_is_associative(chain: Chain) -> None:
    first, second, third, records = chain
    left = Serial(Serial(first, second), third)
    right = Serial(first, Serial(second, third))
    assert seen(left, records) == seen(right, records)


@given(chains_with_records())
def test_without_initialisers_stages_can_run_one_after_the_other(chain: Chain) -> None:
    first, second, _, records = chain
    between = ended_well(first, records)
    behind = ended_well(second, between.outputs)
    outputs, leftovers = seen(Serial(first, second), records)
    assert outputs == behind.outputs
    assert leftovers == counted(between.leftovers + behind.leftovers)


@given(nets_with_records())
def test_the_empty_filter_is_neutral(drawn: Drawn) -> None:
    alone = seen(drawn.net, drawn.records)
    assert seen(Serial(drawn.net, RecordFilter()), drawn.records) == alone
    assert seen(Serial(RecordFilter(), drawn.net), drawn.records) == alone


@given(nets_of_shape("choice"))
def test_without_ties_the_order_of_branches_does_not_matter(drawn: Drawn) -> None:
    assert isinstance(drawn.net, Choice)
    branches = drawn.net.branches
    sure = []
    for record in drawn.records:
        sizes = sorted(size_of_match(branch, frozenset(record)) for branch in branches)
        if sizes[-1] > sizes[-2]:
            sure.append(record)
    assume(sure)
    assert seen(Choice(branches), sure) == seen(Choice(branches[::-1]), sure)


@given(nets_of_shape("star"))
def test_a_star_unfolds(drawn: Drawn) -> None:
    assert isinstance(drawn.net, Serial)
    star = drawn.net.second
    assert isinstance(star, Star)
    arriving = run(drawn.net.first, drawn.records).outputs
    going = [
        record for record in arriving if not any(is_match(leave, record) for leave in star.exits)
    ]
    leaving = [record for record in arriving if record not in going]
    assert seen(star, leaving)[0] == leaving
    assert seen(star, going) == seen(Serial(star.body, star), going)


@given(nets_of_shape("feedback", cells=False))
def test_without_state_feedback_is_a_star_that_has_one_replica(drawn: Drawn) -> None:
    assert isinstance(drawn.net, Serial)
    loop = drawn.net.second
    assert isinstance(loop, Feedback)
    exits = [Pattern(back.variant, Unary("!", back.guard)) for back in loop.backs if back.guard]
    star = Star(loop.body, tuple(exits))
    arriving = run(drawn.net.first, drawn.records).outputs
    assert seen(loop, arriving) == seen(star, arriving)


@given(nets_of_shape("split"))
def test_a_split_is_its_body_for_each_value(drawn: Drawn) -> None:
    net = drawn.net
    assume(isinstance(net, Split))
    assert isinstance(net, Split)
    by_value: dict[int, list[Record]] = {}
    for record in drawn.records:
        by_value.setdefault(record[net.tag], []).append(record)
    whole = ended_well(net, drawn.records)
    parts = [ended_well(net.body, records) for records in by_value.values()]
    assert counted(whole.outputs) == counted(out for part in parts for out in part.outputs)
    assert counted(whole.leftovers) == counted(out for part in parts for out in part.leftovers)
    for records in by_value.values():
        assert seen(net, records) == seen(net.body, records)


@given(nets_with_records(cells=False, starts=False))
def test_without_state_each_record_runs_as_if_alone(drawn: Drawn) -> None:
    alone = [out for record in drawn.records for out in ended_well(drawn.net, [record]).outputs]
    assert seen(drawn.net, drawn.records)[0] == alone


@given(nets_with_records(), st.data())
def test_a_run_can_be_cut_only_between_records(drawn: Drawn, data: st.DataObject) -> None:
    """What the first records cause comes first, whatever is sent later."""
    number = data.draw(st.integers(0, len(drawn.records)))
    start = ended_well(drawn.net, drawn.records[:number]).outputs
    assert ended_well(drawn.net, drawn.records).outputs[: len(start)] == start
