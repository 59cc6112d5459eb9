"""A net that is written as a text is read as the same net."""

import pytest
from hypothesis import given

from callboard.nets.errors import NetError
from callboard.nets.language.parsing import (
    parse,
    parse_box_signature,
    parse_expression,
    parse_filter,
    parse_patterns,
    parse_signature,
)
from callboard.nets.terms.expressions import Expression
from callboard.nets.terms.network import (
    Box,
    NamedNet,
    Net,
    Placed,
    RecordFilter,
    Serial,
    Split,
    Star,
)
from callboard.nets.terms.patterns import BoxSignature, Pattern, Signature
from tests.nets.language import random_terms as random
from tests.nets.language.nets import FACTORIAL, FIBONACCI, MANDELBROT, SIEVE
from tests.nets.language.writing import text_of


@given(random.expressions)
def test_an_expression_is_read_as_it_was_written(expression: Expression) -> None:
    assert parse_expression(str(expression)) == expression


@given(random.pattern_tuples)
def test_patterns_are_read_as_they_were_written(patterns: tuple[Pattern, ...]) -> None:
    assert parse_patterns(", ".join(map(str, patterns))) == patterns


@given(random.filters())
def test_a_filter_is_read_as_it_was_written(net: RecordFilter) -> None:
    assert parse_filter(str(net)) == net


@given(random.signatures)
def test_a_signature_is_read_as_it_was_written(signature: Signature) -> None:
    assert parse_signature(signature.in_full()) == signature


@given(random.box_signatures)
def test_a_boxs_signature_is_read_as_it_was_written(signature: BoxSignature) -> None:
    assert parse_box_signature(str(signature)) == signature


@given(random.named_nets())
def test_a_net_is_read_as_it_was_written(net: NamedNet) -> None:
    assert parse(text_of(net)) == net


@pytest.mark.parametrize("text", [FIBONACCI, SIEVE, MANDELBROT, FACTORIAL])
def test_a_net_from_a_text_is_written_and_read_again(text: str) -> None:
    net = parse(text)
    assert parse(text_of(net)) == net


def test_a_text_has_its_definitions_inside() -> None:
    text = """net outer ({x} -> ...)
{
  box f ((x) -> (y) | (z));
  net inner
  {
    box g ((y) -> ...);
  }
  connect g*{z} if <n > 1>;
  box h ((z) ->);
}
connect f .. (inner | []) .. h .. f;
"""
    assert text_of(parse(text)) == text


def test_a_net_without_a_name_is_main() -> None:
    net = RecordFilter() >> RecordFilter()
    assert text_of(net) == "net main connect [] .. [];\n"
    assert parse(text_of(net)) == NamedNet("main", net)


def test_a_field_after_a_guard_needs_parentheses() -> None:
    net = Split(Star(RecordFilter(), parse_patterns("{x} if <n>")), "key")
    assert str(net) == "([]*{x} if <n>)!key"
    assert parse(text_of(net)) == NamedNet("main", net)


def test_functions_are_left_out() -> None:
    box = Box("f", BoxSignature(("x",), None), print)
    assert parse(text_of(box), {"f": print}) == NamedNet("main", box)


def test_a_thousand_stages_are_written() -> None:
    net: Net = RecordFilter()
    for _ in range(5_000):
        net = Serial(net, RecordFilter())
    assert text_of(net).count("[]") == 5_001


def test_two_boxes_of_one_name_are_refused() -> None:
    first, second = (Box("f", BoxSignature((name,), None)) for name in "xy")
    with pytest.raises(NetError, match="two parts of 'main' are named 'f'"):
        text_of(first >> second)
    inside = first.named("inner") >> second  # each has its own scope
    assert parse(text_of(inside)) == NamedNet("main", inside)


@pytest.mark.parametrize("name", ["<lambda>", "net", "a b", ""])
def test_a_name_that_the_language_lacks_is_refused(name: str) -> None:
    with pytest.raises(NetError, match="cannot be written"):
        text_of(Box(name, BoxSignature(("x",), None)))


def test_a_place_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(NetError, match="the place 'gpu' cannot be written"):
        text_of(Placed(RecordFilter(), "gpu"))


def test_a_long_signature_is_written_in_full() -> None:
    signature = parse_signature(", ".join(f"{{i{number}}} -> {{o}}" for number in range(20)))
    net = NamedNet("main", RecordFilter(), signature)
    assert parse(text_of(net)) == net
