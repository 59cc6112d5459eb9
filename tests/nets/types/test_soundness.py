"""Types keep their promise: a record of an input type gets through, and an error is a real one."""

from __future__ import annotations

import random
from functools import reduce
from operator import rshift

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from callboard.nets import Net, NetTypeError, Typed, accepts, infer
from callboard.nets.terms.labels import Variant
from callboard.nets.terms.network import Split, Star
from callboard.nets.types.places import parts_of
from tests.nets.types.label_runs import LABELS, LabelRun, Lost, all_ways, nets, parts

# Random nets have branches that no record goes to.
records = st.frozensets(st.sampled_from((*LABELS, "z")), max_size=5)


def typed_or_none(net: Net) -> Typed | None:
    try:
        return infer(net)
    except NetTypeError:
        return None


def smallest_that_fails(net: Net) -> Net:
    """Return the part of a net that does not type, though all its own parts do."""
    for part in parts_of(net):
        if typed_or_none(part) is None:
            return smallest_that_fails(part)
    return net


def gets_through(typed: Typed, labels: Variant) -> bool:
    try:
        all_ways(typed, labels)
    except Lost:
        return False
    return True


@settings(max_examples=100)
@given(nets)
def test_each_input_type_gets_through_and_becomes_an_inferred_output(net: Net) -> None:
    typed = typed_or_none(net)
    assume(typed is not None)
    assert typed is not None
    for part in parts(typed):
        for mapping in part.signature.mappings:
            for labels in mapping.inputs:
                if mapping.outputs is not None:  # too much to look at
                    assert all_ways(part, labels) <= set(mapping.outputs)
                    with_more = {output | {"z"} for output in all_ways(part, labels)}
                    assert all_ways(part, labels | {"z"}) == with_more


@settings(max_examples=100)
@given(nets, records)
def test_records_are_accepted_that_get_through(net: Net, labels: Variant) -> None:
    typed = typed_or_none(net)
    assume(typed is not None and typed.outputs(labels) is not None)
    assert typed is not None
    assert accepts(typed, labels) == gets_through(typed, labels)


@settings(max_examples=100)
@given(nets, st.lists(records, max_size=6), st.randoms(use_true_random=False))
def test_records_beside_others_are_ok(net: Net, sent: list[Variant], source: random.Random) -> None:
    typed = typed_or_none(net)
    assume(typed is not None)
    assert typed is not None
    run = LabelRun(source.randrange)
    for labels in (*typed.inputs, *sent, *typed.inputs):
        outputs = typed.outputs(labels)
        if outputs is not None and accepts(typed, labels):
            event("accepted")
            run.send(typed, labels)


@settings(max_examples=100)
@given(st.builds(lambda first, *rest: reduce(rshift, rest, first), *[nets] * 4))
def test_a_net_that_does_not_type_loses_a_record_that_its_first_part_takes(net: Net) -> None:
    if typed_or_none(net) is not None:
        return
    event("does not type")
    failing = smallest_that_fails(net)
    with pytest.raises(NetTypeError) as caught:
        infer(failing)
    children = tuple(infer(part) for part in parts_of(failing))
    first = children[0]
    # The evaluator asks for children, a net and types of choices' branches alone.
    whole = Typed(failing, "/", first.signature, children, first._facts, first._inference)
    starts = first.inputs
    if isinstance(failing, Split):
        starts = tuple(variant | {failing.tag} for variant in starts)
    if "has no end" in str(caught.value):
        assert isinstance(failing, Star)
        assert any(gets_through(whole, v) and not all_ways(whole, v) for v in starts)
    else:
        assert not all(gets_through(whole, variant) for variant in starts)
