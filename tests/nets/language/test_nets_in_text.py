"""Whole nets: combinators, definitions, names, and the functions of boxes."""

import logging
from typing import Any

import pytest

from callboard.nets.errors import NetSyntaxError, NetTypeError
from callboard.nets.language.parsing import parse, parse_filter, parse_patterns
from callboard.nets.terms.network import (
    Box,
    BoxOptions,
    Choice,
    Feedback,
    NamedNet,
    Net,
    Ordered,
    Placed,
    RecordFilter,
    Serial,
    Split,
    Star,
    Sync,
)
from callboard.nets.terms.patterns import BoxSignature
from tests.nets.language.nets import FACTORIAL, FIBONACCI, MANDELBROT, SIEVE

# Few texts use all BOXES.
A, B, C = (Box(name, BoxSignature(("x",), (("x",),))) for name in "abc")
BOXES = {"a": A, "b": B, "c": C}
EXITS = parse_patterns("{x} if <n > 1>, {y}")


def inner(net: Net) -> Any:
    assert isinstance(net, NamedNet)
    return net.body


def expression(text: str) -> Any:
    return inner(parse(f"net n connect {text};", BOXES))


@pytest.mark.parametrize(
    ("text", "net"),
    [
        ("a .. b .. c", Serial(Serial(A, B), C)),
        ("a .. (b .. c)", Serial(A, Serial(B, C))),
        ("a | b | c", Choice((A, B, C))),
        ("(a | b) | c", Choice((Choice((A, B)), C))),
        ("a || b || c", Choice((A, B, C), ordered=True)),
        ("a | b || c | a", Choice((A, Choice((B, C), ordered=True), A))),
        ("a .. b | c .. a", Choice((Serial(A, B), Serial(C, A)))),
        ("a * {x} if <n > 1>, {y} .. b", Serial(Star(A, EXITS), B)),
        ("a .. b ** {x} if <n > 1>, {y}", Serial(A, Star(B, EXITS, ordered=True))),
        ("a \\ {x} if <n > 1>, {y} | b", Choice((Feedback(A, EXITS), B))),
        ("a ! <t>", Split(A, "<t>")),
        ("a !! <#t>", Split(A, "<#t>", ordered=True)),
        ("a !@ <t>", Split(A, "<t>", placed=True)),
        ("a !! @ <t>", Split(A, "<t>", ordered=True, placed=True)),
        ("a ! key", Split(A, "key")),
        ("a@3 .. b", Serial(Placed(A, 3), B)),
        ("a@3!<t>*{x} if <n > 1>, {y}@4", Placed(Star(Split(Placed(A, 3), "<t>"), EXITS), 4)),
        ("a*{x} if <n > 1>!<t>", Split(Star(A, EXITS[:1]), "<t>")),
        ("(a .. b)@1", Placed(Serial(A, B), 1)),
        ("[| {x} if <n > 1>, {y} |]", Sync(EXITS)),
        ("[]", RecordFilter()),
        ("a .. [{x} -> {y=x}]", Serial(A, parse_filter("{x} -> {y=x}"))),
        ("ordered(a | b) .. c", Serial(Ordered(Choice((A, B))), C)),
        ("<{x} | {y}> a | <> b", Choice((A, B))),
    ],
)  # fmt: skip
def test_a_text_is_the_net_it_says(text: str, net: Net) -> None:
    assert expression(text) == net


def test_ten_thousand_stages_are_read() -> None:
    net = expression(" .. ".join(["a"] * 10_000))
    stages = 1
    while isinstance(net, Serial):
        assert net.second == A
        net, stages = net.first, stages + 1
    assert stages == 10_000


def test_deep_parentheses_are_read() -> None:
    assert expression("(" * 5_000 + "a" + ")" * 5_000) == A


@pytest.mark.parametrize("text", [FIBONACCI, SIEVE, MANDELBROT, FACTORIAL])
def test_whole_nets_are_read_without_functions(text: str) -> None:
    assert isinstance(parse(text), NamedNet)


def test_a_definition_has_its_name_signature_and_body() -> None:
    net = parse(FIBONACCI)
    assert isinstance(net, NamedNet)
    assert (net.name, str(net.signature)) == ("fib", "{<n>} -> {<result>}")
    assert str(net.body) == "start .. down .. up"


def test_types_and_signatures_have_names() -> None:
    sieve = inner(parse(SIEVE))
    stage = sieve.second.body
    assert str(stage.signature) == "{<n>} -> {<n>, <prime>} | {<prime>}, {<end>} -> {<end>}"
    assert str(sieve.first.signature) == "{<limit>} -> {<n>} | {<end>}"


def test_a_choice_of_all_three_branches_is_one() -> None:
    stage = inner(parse(SIEVE)).second.body
    assert len(stage.body.branches) == 3
    assert stage.body.ordered


def test_the_last_net_is_the_whole_unless_a_name_is_given() -> None:
    text = "net one connect []; net two connect one .. one; type t = {a};"
    assert parse(text) == NamedNet("two", Serial(parse(text, name="one"), parse(text, name="one")))
    with pytest.raises(NetSyntaxError, match="no net 'three', but one, two"):
        parse(text, name="three")


def test_names_of_inner_nets_shadow_outer_ones_and_end_with_their_net() -> None:
    text = """
    box f ((x) -> (x));
    type t = {a};
    net outer
    {
      box f ((y) -> (y));
      type t = {b};
      net deep (t -> t) connect f;
    }
    connect deep;
    net after (t -> t) connect f;
    net whole connect outer .. after;
    """
    whole = inner(parse(text))
    deep = whole.first.body
    assert (str(deep.signature), str(deep.body.signature)) == ("{b} -> {b}", "(y) -> (y)")
    after = whole.second
    assert (str(after.signature), str(after.body.signature)) == ("{a} -> {a}", "(x) -> (x)")


def test_an_inner_name_is_unknown_outside() -> None:
    with pytest.raises(NetSyntaxError, match="named 'f' so far"):
        parse("net n { box f ((x) -> (x)); } connect f; net m connect f;")


def test_a_net_does_not_know_itself() -> None:
    with pytest.raises(NetSyntaxError, match="named 'n' so far"):
        parse("net n connect [] .. n;")


def test_a_declared_box_gets_its_function() -> None:
    def double(x: int) -> int:
        return 2 * x

    box = inner(parse("box double ((x) -> (x)); net n connect double;", {"double": double}))
    assert box == Box("double", BoxSignature(("x",), (("x",),)), double)
    assert box(4) == 8


def test_a_class_may_be_the_function() -> None:
    class Counter:
        def __call__(self, x: int) -> int:
            return x

    net = parse("net n { box count ((x) -> (x)); } connect count;", {"count": Counter})
    assert inner(net).function is Counter


def test_a_box_keeps_its_options_and_takes_the_texts_name() -> None:
    given = Box("other", BoxSignature(("x",), None), str, BoxOptions(concurrency=3))
    net = parse("net n { box f ((x) -> (y) | (z)); } connect f;", {"f": given})
    declared = BoxSignature(("x",), (("y",), ("z",)))
    assert inner(net) == Box("f", declared, str, BoxOptions(concurrency=3))


def test_a_box_keeps_the_order_of_its_arguments() -> None:
    own = BoxSignature(("y", "x"), (("b", "a"),))
    text = "net n { box f ((x, y) -> (a, b)); } connect f;"
    assert inner(parse(text, {"f": Box("f", own, max)})).signature == own


@pytest.mark.parametrize(
    "own",
    [
        BoxSignature(("x", "z"), (("a",),)),
        BoxSignature(None, (("a",),)),
        BoxSignature(("x",), (("a",), ("b",))),
        BoxSignature(("x",), ()),
    ],
)
def test_a_box_with_another_signature_is_refused(own: BoxSignature) -> None:
    with pytest.raises(NetTypeError, match=r"declares box f \(\(x\) -> \(a\)\), but it has"):
        parse("net n { box f ((x) -> (a)); } connect f;", {"f": Box("f", own, str)})


def test_a_net_may_stand_for_a_declared_box() -> None:
    net = parse("net n { box f ((x, <t>) -> (a)); } connect f;", {"f": A >> B})
    assert isinstance(inner(net), NamedNet)
    assert inner(net).body == Serial(A, B)
    assert str(inner(net).signature) == "{x, <t>} -> {a}"


def test_a_net_may_be_declared_and_given() -> None:
    given = {"f": A >> B}
    assert inner(parse("net f ({x} -> {x}); net n connect f;", given)).body == Serial(A, B)
    with pytest.raises(NetSyntaxError, match="not a net among `boxes`"):
        parse("net f; net n connect f;", BOXES)


def test_all_boxes_without_a_function_are_named_at_once() -> None:
    with pytest.raises(NetSyntaxError, match="given for: less, times; "):
        parse(FACTORIAL, {"at_most_one": print})


def test_a_function_without_a_signature_is_refused() -> None:
    with pytest.raises(NetSyntaxError, match="declares no box 'f'"):
        parse("net n connect f;", {"f": print})


def test_a_value_that_is_not_a_function_is_refused() -> None:
    with pytest.raises(TypeError, match="'f' is neither a function nor a box: 3"):
        parse("net n { box f ((x) -> (a)); } connect f;", {"f": 3})  # type: ignore[dict-item]


def test_ignored_parts_are_noted(caplog: pytest.LogCaptureFixture) -> None:
    text = """//! snet FLAT
    // an ordinary comment
    net n
    {
      <metadata> <box name="f" > anything; ( </box> </metadata>
      box f ((x) -> (x)) { <<< C | x > 1; /* } >>> }
    }
    connect f; /* net m connect [];
    */
    """
    with caplog.at_level(logging.INFO, "callboard"):
        assert inner(parse(text)).name == "f"
    assert [record.message for record in caplog.records] == [
        "text of a net: skipped what=directive line=1",
        "text of a net: skipped what=metadata line=5",
        "text of a net: skipped what=body line=6",
    ]


def test_a_misspelt_name_is_told_beside_the_missing_one() -> None:
    text = "net n { box read ((x) -> (y)); } connect read;"
    with pytest.raises(NetSyntaxError, match=r"given for: read; .* The text does not use: raed"):
        parse(text, boxes={"raed": str})


@pytest.mark.parametrize("boxes", [[A], A, str, "a"])
def test_boxes_are_given_by_their_names(boxes: Any) -> None:
    with pytest.raises(TypeError, match="`boxes` must be a dict from names to functions, such as"):
        parse("net n connect a;", boxes)
