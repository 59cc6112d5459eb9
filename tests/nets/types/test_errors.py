"""Type errors of nets say which types meet, where, and why a label is missing."""

from __future__ import annotations

import pytest

from callboard.nets import Net, NetTypeError, infer
from callboard.nets.language.parsing import parse_filter as f
from callboard.nets.language.parsing import parse_patterns, parse_signature
from callboard.nets.terms.expressions import TagValue
from callboard.nets.terms.network import (
    Choice,
    Feedback,
    NamedNet,
    Ordered,
    Placed,
    RecordFilter,
    Split,
    Star,
    Sync,
)
from callboard.nets.terms.patterns import Item, Rule
from tests.nets.types.nets import declared as b


def error_of(net: Net) -> str:
    with pytest.raises(NetTypeError) as caught:
        infer(net)
    return str(caught.value)


def test_a_label_that_was_taken_is_named_with_the_box_that_took_it() -> None:
    inner = NamedNet("inner", b("(a) -> (b)", "first") >> b("(b) -> (c)", "second"))
    assert error_of(NamedNet("outer", inner >> b("(a, c, d) -> (e)", "third"))) == (
        "the box second (at /outer/inner/second) produces {c}, "
        "and the box third (at /outer/third) takes {a, c, d}. "
        "a is missing: the box first (at /outer/inner/first) takes it, and does not produce it. "
        "d is missing: nothing produces it, and the input {a} does not have it"
    )


def test_surplus_labels_are_shown_where_the_nets_meet() -> None:
    net = b("(a) -> (a)", "first") >> b("(b) -> (c)", "second") >> b("(b) -> (d)", "third")
    assert error_of(net) == (
        "the box second produces {c}, which makes {a, c}, and the box third takes {b}. "
        "b is missing: the box second takes it, and does not produce it"
    )


def test_the_nearest_branch_of_a_choice_is_named() -> None:
    net = b("(a) -> (b)", "first") >> (b("(a, c) -> (d)", "one") | b("(a, b) -> (d)", "two"))
    assert error_of(net) == (
        "the box first produces {b}, and the choice one | two takes {a, c} | {a, b}. "
        "The nearest is {a, b}. a is missing: the box first takes it, and does not produce it"
    )


def test_the_exits_of_a_star_are_shown() -> None:
    net = Star(b("(a) -> (b) | (x)", "step"), parse_patterns("{x}"))
    assert error_of(net) == (
        "the box step produces {b}, and the box step takes {a}. "
        "It matches no exit of the star, {x}. "
        "a is missing: the box step takes it, and does not produce it"
    )


def test_outputs_of_an_initialiser_must_be_taken_as_they_are() -> None:
    net = (b("-> (a)", "start") | RecordFilter()) >> b("(a, b) -> (c)", "next")
    assert error_of(net) == (
        "{a} comes in, and the box next takes {a, b}. b is missing: nothing produces it"
    )


def test_records_that_reach_an_initialiser_are_an_error() -> None:
    assert error_of(b("(a) -> (b)", "first") >> b("-> (c)", "start")) == (
        "the box first produces {b}, and the box start is an initialiser: it takes no records"
    )


def test_a_binding_tag_that_keeps_a_record_out_is_named() -> None:
    net = b("(a) -> (b, <#i>)", "first") >> (b("(b) -> (c)", "one") | b("(c) -> (c)", "two"))
    assert error_of(net) == (
        "the box first produces {b, <#i>}, and the choice one | two takes {b} | {c}. "
        "The nearest is {b}. <#i> is a binding tag: only a variant that has it matches"
    )


def test_a_split_needs_its_tag() -> None:
    net = b("(a, <t>) -> (b)", "first") >> Split(b("(b) -> (c)", "second"), "<t>")
    assert error_of(net) == (
        "the box first produces {b}, and the split second!<t> takes {<t>}. "
        "<t> is missing: the box first takes it, and does not produce it"
    )


def test_records_that_go_back_must_be_taken_again() -> None:
    net = Feedback(b("(a) -> (b)", "step"), parse_patterns("{a}, {b}"))
    assert "the box step produces {b}, and the box step takes {a}" in error_of(net)


@pytest.mark.parametrize(
    "wrap", [Ordered, lambda net: Placed(net, 1), lambda net: NamedNet("n", net)]
)
def test_an_error_is_found_within_other_nets(wrap: type[Ordered]) -> None:
    assert "b is missing" in error_of(wrap(b("(b) -> (a)") >> b("(b) -> (c)")))


def test_a_declared_input_must_get_through() -> None:
    net = NamedNet("n", b("(a, b) -> (c)", "box"), parse_signature("{a} -> {c}"))
    assert error_of(net) == (
        "{a} comes in, and the box box (at /n/box) takes {a, b}. "
        "b is missing: nothing produces it, and the input {a} does not have it"
    )


def test_declared_outputs_of_which_none_comes_out_are_an_error() -> None:
    net = NamedNet("n", b("(a) -> (b)", "box"), parse_signature("{a} -> {c} | {d}"))
    assert error_of(net) == (
        "the net n produces {b} for {a}, and its signature has {c} | {d}. "
        "It comes from the box box (at /n/box)"
    )
    infer(NamedNet("n", b("(a) -> (b) | (c)"), parse_signature("{a} -> {c} | {d}")))


def test_a_star_that_no_record_can_leave_is_an_error() -> None:
    assert error_of(Star(b("(a) -> (a, b)", "step"), parse_patterns("{c}, {d}"))) == (
        "the star step*{c}, {d} has no end: its body produces the labels {a, b}, "
        "and none of them is in an exit, {c} | {d}. A record that goes in never leaves"
    )


@pytest.mark.parametrize(
    "net",
    [
        Star(b("(a) -> ..."), parse_patterns("{c}")),  # it may produce c
        Star(b("(a) -> (a, b)"), parse_patterns("{b, c}")),  # the record may have c
        Star(b("(a) ->"), parse_patterns("{c}")),  # it ends there
        Star(f("{<n>} -> {<n=n-1>}"), parse_patterns("{a} if <n == 0>")),  # later it may hold
        Star(Sync(parse_patterns("{a}, {b}")), parse_patterns("{a, b}")),
    ],
    ids=str,
)
def test_a_star_that_a_record_might_leave_is_right(net: Net) -> None:
    infer(net)


def with_item(item: Item) -> RecordFilter:
    return RecordFilter(frozenset(("a", "<t>")), (Rule(((item,),)),))


@pytest.mark.parametrize(
    ("net", "fault"),
    [
        (with_item(Item("b", "c")), "the field b comes from c, which the filter's"),
        (with_item(Item("c")), "the field c comes from c, which"),
        (with_item(Item("c", "<t>")), "the field c gets the value of a field, not of tags"),
        (with_item(Item("<s>", value=TagValue("<r>"))), "<s> reads <r>, which the filter's"),
        (
            RecordFilter(frozenset("a"), (Rule(((),), TagValue("<r>")),)),
            "its guard reads <r>, which the filter's pattern {a} lacks",
        ),
        (
            RecordFilter(frozenset("a"), (Rule(((Item("a"), Item("a")),)),)),
            "a occurs twice in {a, a}",
        ),
        (b("(a, a) -> (b)"), "a occurs twice in {a, a}"),
        (b("(a) -> (b) | (c, c)"), "c occurs twice in {c, c}"),
        (Sync(parse_patterns("{a}")), "a synchrocell expects at least two patterns, got 1"),
        (Choice((b("(a) -> (b)"),)), "a choice expects at least two branches, got 1"),
        (Star(b("(a) -> (b)"), ()), "a star expects at least one exit"),
        (Feedback(b("(a) -> (b)"), ()), "a feedback expects at least one pattern"),
    ],
    ids=str,
)
def test_a_part_that_makes_no_sense_by_itself_is_an_error(net: Net, fault: str) -> None:
    assert fault in error_of(net)
