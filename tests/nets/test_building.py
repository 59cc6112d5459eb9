"""Functions that build networks make terms, from terms and texts, and refuse wrong operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callboard.core.errors import ConfigError
from callboard.nets import (
    NetSyntaxError,
    accepts,
    box,
    choice,
    feedback,
    filter,  # noqa: A004
    infer,
    join,
    mermaid,
    net,
    ordered,
    split,
    star,
    sync,
)
from callboard.nets.language.parsing import parse_filter, parse_pattern, parse_signature
from callboard.nets.terms.network import (
    Choice,
    Feedback,
    NamedNet,
    Ordered,
    Placed,
    RecordFilter,
    Serial,
    Split,
    Star,
    Sync,
)
from callboard.nets.terms.patterns import Pattern
from callboard.policies import Balanced


@box("(x) -> (x) | (y)")
def step(x: object) -> object:
    return x


@box("(y) -> (z)")
def last(y: object) -> object:
    return y


A, B = parse_pattern("{a}"), parse_pattern("{b}")


def test_operators_compose_in_series_and_as_a_choice() -> None:
    assert step >> last == Serial(step, last)
    assert step | last | step == Choice((step, last, step))
    assert choice(step, last) == step | last
    assert choice(step, last, ordered=True, ties="fair") == Choice((step, last), True, "fair")


@pytest.mark.parametrize(
    "compose",
    [
        lambda net, other: net >> other,
        lambda net, other: other >> net,
        lambda net, other: net | other,
        lambda net, other: other | net,
        lambda net, other: infer(other),
        lambda net, other: mermaid(other),
    ],
)
def test_a_function_must_be_made_a_box(compose: Callable[[Any, Any], object]) -> None:
    with pytest.raises(TypeError, match="is a net, not <built-in function len>: make it a box"):
        compose(step, len)
    with pytest.raises(TypeError, match=r"is a net, not 3$"):
        compose(step, 3)


@pytest.mark.parametrize("place", [0, 7, "balanced", Balanced, Balanced(), {"policy": "balanced"}])
def test_a_place_is_a_number_or_a_policy(place: Any) -> None:
    assert step.at(place) == Placed(step, place)


@pytest.mark.parametrize("place", ["nonsense", -1, True, {"policy": "gpu"}])
def test_other_places_are_refused(place: Any) -> None:
    with pytest.raises(ConfigError, match="a place is a worker's number"):
        step.at(place)


@pytest.mark.parametrize("exits", ["{a}, {b}", ["{a}", "{b}"], ("{a}", B), iter((A, B))])
def test_exits_are_a_text_or_several_patterns(exits: Any) -> None:
    assert star(step, exits) == Star(step, (A, B))


def test_each_word_makes_its_term() -> None:
    assert star(step, A, ordered=True, limit=3) == Star(step, (A,), True, 3)
    assert split(step, "<t>", ordered=True, placed=True) == Split(step, "<t>", True, True)
    assert split(step, "key") == Split(step, "key")
    assert feedback(step, "{a}, {b}") == Feedback(step, (A, B))
    assert sync("{a}", B, timeout=2) == Sync((A, B), 2)
    assert filter("{a} -> {b=a}") == parse_filter("{a} -> {b=a}")
    assert filter(RecordFilter()) == RecordFilter()
    assert ordered(step) == Ordered(step)
    signature = parse_signature("{x} -> {y}")
    assert (
        net(step, "n", "{x} -> {y}") == net(step, "n", signature) == NamedNet("n", step, signature)
    )
    assert net(step, name="n") == step.named("n")


def test_a_join_is_a_cell_after_another_for_each_value() -> None:
    assert join(on="<id>", of=("page", "price"), timeout=3) == Split(
        Star(
            Sync((Pattern(frozenset(("page",))), Pattern(frozenset(("price",)))), 3),
            (Pattern(frozenset(("page", "price"))),),
        ),
        "<id>",
    )
    either = join(on="id", of=("page", "price"), timeout=3)
    assert isinstance(either, Choice)
    assert [branch.tag for branch in either.branches if isinstance(branch, Split)] == ["id", "<id>"]
    made = join(on="<id>", of=("page", ("price", "<n>"), "{stock} if <n > 1>"), ordered=True)
    assert (
        str(made)
        == "[| {page}, {price, <n>}, {stock} if <n > 1> |]*{page, price, stock, <n>}!!<id>"
    )


def test_a_join_takes_its_parts_with_the_label_that_they_share() -> None:
    typed = infer(join(on="<id>", of=("page", "price")))
    assert accepts(typed, {"page", "<id>"})
    assert accepts(typed, {"price", "<id>"})
    assert not accepts(typed, {"price"})
    merged = frozenset(("page", "price", "<id>"))
    assert typed.outputs({"page", "<id>"}) == (merged,)


@pytest.mark.parametrize(
    ("word", "arguments", "fact"),
    [
        (star, (len, "{a}"), "a star's body is a net, not <built-in function len>: make it a box"),
        (star, (3, "{a}"), "a star's body is a net, not 3"),
        (star, (step, 3), "a star's exits are texts such as '{a, <n>}', not 3"),
        (star, (step, [3]), "a star's exits are texts such as '{a, <n>}', not 3"),
        (star, (step, []), "a star's exits are at least one"),
        (split, (step, "<i"), "a split's tag is a label, such as 'id' or '<id>', not '<i'"),
        (split, (step, 3), "a split's tag is a label, such as 'id' or '<id>', not 3"),
        (feedback, (None, "{a}"), "a feedback's body is a net, not None"),
        (sync, ("{a}",), "a synchrocell has at least two patterns, not 1"),
        (filter, (3,), "a filter is a text, not 3"),
        (choice, (step,), "a choice has at least two branches, not 1"),
        (choice, (step, len), "a choice's branch is a net, not <built-in function len>"),
        (ordered, (3,), "an ordered net's body is a net, not 3"),
        (net, (step, ""), "a net's name is a string that is not empty, not ''"),
        (net, (step, "n", 3), "a net's signature is a text, not 3"),
        (net, (3, "n"), "the body of the net n is a net, not 3"),
        (join, ("", ("a", "b")), "what a join is on is a label"),
        (join, ("i", "ab"), "a join is of several records, not 'ab' alone"),
        (join, ("i", ("a",)), "a join is of at least two records, not 1"),
        (join, ("i", ("a", ())), "a part of a join has at least one label, not ()"),
        (join, ("i", ("a", "a")), "{a} has those of all"),
        (join, ("i", ("a", "{a, b}")), "{a, b} has those of all"),
        (join, ("i", ("a", "{i, b}")), "a join's parts have i all: {b, i} need not say it"),
    ],
)
def test_wrong_operands_are_refused_with_their_values(
    word: Callable[..., object], arguments: tuple[Any, ...], fact: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        word(*arguments)
    assert fact in str(caught.value)


@pytest.mark.parametrize(
    ("word", "arguments", "options", "fact"),
    [
        (star, (step, "{a}"), {"limit": 0}, "a star's limit is a whole number of 1 or more, not 0"),
        (star, (step, "{a}"), {"ordered": 1}, "ordered is True or False, not 1"),
        (split, (step, "<t>"), {"placed": None}, "placed is True or False, not None"),
        (split, (step, "t"), {"placed": True}, "placed=True expects a tag, the number of a worker"),
        (sync, ("{a}", "{b}"), {"timeout": -1}, "a cell's timeout is a number of seconds"),
        (choice, (step, last), {"ties": "any"}, "ties is one of first, fair, not 'any'"),
        (join, ("i", ("a", "b")), {"timeout": "1"}, "a join's timeout is a number of seconds"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(
    word: Callable[..., object], arguments: tuple[Any, ...], options: dict[str, Any], fact: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        word(*arguments, **options)
    assert fact in str(caught.value)


def test_a_wrong_text_is_refused_with_its_place() -> None:
    with pytest.raises(NetSyntaxError, match="line 1, column"):
        star(step, "{a")
    with pytest.raises(NetSyntaxError, match="line 1, column"):
        filter("{a} ->> {b}")
