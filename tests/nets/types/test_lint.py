"""`lint` finds a branch that no record goes to, since ties go to an earlier one.

A false alarm is worse than none: what else a record may have, or where it may come from, counts.
"""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from callboard.nets import (
    Net,
    NetTypeError,
    choice,
    feedback,
    infer,
    join,
    lint,
    net,
    ordered,
    split,
    star,
    sync,
)
from callboard.nets import filter as filtering
from callboard.nets.terms.labels import Variant
from callboard.nets.types.lint import starved_branches
from tests.nets.types.label_runs import LabelRun, Lost, nets_of
from tests.nets.types.nets import declared as b

PLAIN = ("a", "b", "<t>")  # few, so that there are ties
records = st.frozensets(st.sampled_from((*PLAIN, "z")))


THINK = b("(talk) -> (talk, tool) | (answer)", "think")
TOOL = b("(tool) -> (talk)", "tool")


def test_the_message_names_both_branches_and_a_record_that_fits_them() -> None:
    agent = net(star(THINK | TOOL, "{answer}"), "agent", "{talk} -> {answer}")
    assert lint(agent) == [
        "the box tool (at /agent/tool) gets no records: {talk, tool} matches the box think (at "
        "/agent/think) as well, and the first in the text gets it. Put the other one first, let it "
        'take more labels, or write choice(..., ties="fair")'
    ]


def test_a_branch_that_gets_records_from_outside_alone_is_told_of_as_such() -> None:
    [text] = lint(star(THINK | TOOL, "{answer}"))
    assert "the box tool gets no records but those with labels from outside: {talk, tool}" in text


A, B = b("(x) -> (z)", "a"), b("(y) -> (z)", "b")
BOTH = b("(in) -> (x, y)", "both")
CONFIGURE, STEP = b("(config) -> (config, state)", "configure"), b("(state) -> (done)", "step")


@pytest.mark.parametrize(
    ("starving", "loser"),
    [
        (A | A.named("again"), "the net again"),
        (A | b("(x) -> (y)", "c") | B, "the box c"),
        (BOTH >> (A | B), "the box b"),
        (BOTH >> (B | A), "the box a"),
        (BOTH >> ordered(A | B), "the box b"),
        (BOTH >> choice(A, B, ordered=True), "the box b"),
        (BOTH.named("n") >> (A.named("m") | B), "the box b"),
        (filtering("{in} -> {x=in, y=in}") >> (A | B), "the box b"),
        (split(BOTH, "<t>") >> (A | B), "the box b"),
        (b("-> (x, y)", "start") >> (A | B), "the box b"),
        (feedback(BOTH, "{in}") >> (A | B | filtering("[]")), "the box b"),
        (BOTH >> (A | B | filtering("[]")), "the box b"),
        (b("(in) -> (x) | (x, y)") >> (A | B), "the box b"),
        (star(BOTH >> (A | B), "{z}"), "the box b"),
        (star(CONFIGURE | STEP, "{done}"), "the box step"),
        (BOTH >> (A >> b("(z) -> (z)", "c") | B), "the box b"),
    ],
    ids=str,
)
def test_a_branch_that_loses_all_ties_is_told_of(starving: Net, loser: str) -> None:
    [text] = lint(starving)
    assert text.startswith(loser)


@pytest.mark.parametrize(
    "sound",
    [
        A | B,
        A | b("(x, y) -> (z)", "c"),
        choice(A, b("(x) -> (z)", "c"), ties="fair"),
        BOTH >> choice(A, B, ties="fair"),
        star(TOOL | THINK, "{answer}"),
        star(THINK | b("(talk, tool) -> (talk)", "tool"), "{answer}"),
        star(THINK >> (TOOL | filtering("[]")), "{answer}"),
        star(STEP | CONFIGURE, "{done}"),  # records from outside alone are configured
        b("(in) -> (x) | (y)") >> (A | B),
        b("(in) -> ...") >> (A | B),
        b("(in) -> (x)") >> (A | B),  # B is of no use, and no tie says so
        b("(in) -> (x, y)") >> (b("(x, y) -> (z)", "c") | A),  # a case for whatever may come
        BOTH >> (A | filtering("[]")),
        A | filtering("[]"),
        (A | b("-> (x)", "start")) >> filtering("[]"),
        filtering("{k} -> {k, <k=1>, x=k}; {k, <k=1>, y=k}") >> join(on="k", of=("x", "y")),
        BOTH >> star(sync("{x}", "{w}"), "{x, w}") >> (b("(x, w) -> (z)", "c") | A | B),
        # A record with {g} besides goes by D, so that F does get one.
        (b("(c) -> (e)") | b("(c, g) -> (f)", "D") | filtering("[]"))
        >> (b("(e) -> (z)") | b("(f) -> (z)", "F") | filtering("[]")),
    ],
    ids=str,
)
def test_there_is_no_false_alarm(sound: Net) -> None:
    assert not lint(sound)


def test_binding_tags_switch_it_off() -> None:
    net = b("(in) -> (x, y)") >> (A | B)
    assert lint(net)
    assert not lint(b("(<#i>) -> (in)") >> net)


def test_with_too_many_ways_nothing_is_said() -> None:
    def grown(number: int) -> Net:
        labels = [f"l{index}" for index in range(number)]
        net: Net = b("(in) -> (m, x, y)")
        for label in labels:  # each doubles the sets of labels
            net = net >> b(f"(m) -> (m) | (m, {label})")
        return net >> (A | B) | b(f"({', '.join(labels)}) -> (z)")

    assert lint(grown(3))
    assert not lint(grown(15))


@settings(max_examples=300)
@given(nets_of(PLAIN), st.lists(records, max_size=8), st.randoms(use_true_random=False))
def test_a_branch_that_is_said_to_get_no_records_gets_none(
    net: Net, sent: list[Variant], source: random.Random
) -> None:
    try:
        typed = infer(net)
    except NetTypeError:
        return
    said = {id(tie.branch) for tie, is_certain in starved_branches(typed) if is_certain}
    event(f"{len(said)} branches are said to get no records")
    run = LabelRun(source.randrange)
    for labels in (*typed.inputs, *sent):
        with suppress(Lost):
            run.send(typed, labels)
    assert not run.chosen & said
