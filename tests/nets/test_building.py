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
    with pytest.raises(
        TypeError, match="expected a net, got <built-in function len>: make it a box"
    ):
        compose(step, len)
    with pytest.raises(TypeError, match=r"expected a net, got 3$"):
        compose(step, 3)


@pytest.mark.parametrize("place", [0, 7, "balanced", Balanced, Balanced(), {"policy": "balanced"}])
def test_a_place_is_a_number_or_a_policy(place: Any) -> None:
    assert step.at(place) == Placed(step, place)


@pytest.mark.parametrize("place", ["nonsense", -1, True, {"policy": "gpu"}])
def test_other_places_are_refused(place: Any) -> None:
    with pytest.raises(ConfigError, match="a place expects a worker's number"):
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
        (
            star,
            (len, "{a}"),
            "a star's body: expected a net, got <built-in function len>: make it a box",
        ),
        (star, (3, "{a}"), "a star's body: expected a net, got 3"),
        (star, (step, 3), "a star's exits expect strings such as '{a, <n>}', got 3"),
        (star, (step, [3]), "a star's exits expect strings such as '{a, <n>}', got 3"),
        (star, (step, []), "a star's exits expect at least one pattern"),
        (split, (step, "<i"), "a split's tag expects a label, such as 'id' or '<id>', got '<i'"),
        (split, (step, 3), "a split's tag expects a label, such as 'id' or '<id>', got 3"),
        (feedback, (None, "{a}"), "a feedback's body: expected a net, got None"),
        (sync, ("{a}",), "a synchrocell expects at least two patterns, got 1"),
        (filter, (3,), "filter() expects a string, got 3"),
        (choice, (step,), "a choice expects at least two branches, got 1"),
        (choice, (step, len), "a choice's branch: expected a net, got <built-in function len>"),
        (ordered, (3,), "an ordered net's body: expected a net, got 3"),
        (net, (step, ""), "a net's name expects a non-empty string, got ''"),
        (net, (step, "n", 3), "a net's signature expects a string, got 3"),
        (net, (3, "n"), "the body of the net n: expected a net, got 3"),
        (join, ("", ("a", "b")), "the key of a join expects a label"),
        (join, ("i", "ab"), "a join expects several records, got 'ab'"),
        (join, ("i", ("a",)), "a join expects at least two records, got 1"),
        (join, ("i", ("a", ())), "a part of a join expects at least one label, got ()"),
        (join, ("i", ("a", "a")), "{a} has those of all"),
        (join, ("i", ("a", "{a, b}")), "{a, b} has those of all"),
        (join, ("i", ("a", "{i, b}")), "all parts of a join have i: leave it out of {b, i}"),
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
        (
            star,
            (step, "{a}"),
            {"limit": 0},
            "a star's limit must be a whole number of at least 1, got 0",
        ),
        (star, (step, "{a}"), {"ordered": 1}, "ordered must be True or False, got 1"),
        (split, (step, "<t>"), {"placed": None}, "placed must be True or False, got None"),
        (split, (step, "t"), {"placed": True}, "placed=True expects a tag, the number of a worker"),
        (sync, ("{a}", "{b}"), {"timeout": -1}, "a cell's timeout must be a number of seconds"),
        (choice, (step, last), {"ties": "any"}, "ties must be one of first, fair, got 'any'"),
        (join, ("i", ("a", "b")), {"timeout": "1"}, "a join's timeout must be a number of seconds"),
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
