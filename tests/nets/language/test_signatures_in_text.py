"""Signatures of nets and boxes, as texts."""

import pytest

from callboard.nets.errors import NetSyntaxError
from callboard.nets.language.parsing import parse_box_signature, parse_signature
from callboard.nets.terms.patterns import BoxSignature, Mapping, Signature


def variants(*names: str) -> tuple[frozenset[str], ...]:
    return tuple(frozenset(name.split()) for name in names)


@pytest.mark.parametrize(
    ("text", "mappings"),
    [
        ("{a} -> {b}", [Mapping(variants("a"), variants("b"))]),
        (
            "{a, <t>} | {b} -> {c} | {}, {d} -> ...",
            [Mapping(variants("a <t>", "b"), variants("c", "")), Mapping(variants("d"), None)],
        ),
        ("{a} ->", [Mapping(variants("a"), ())]),
        ("-> {a}", [Mapping((), variants("a"))]),
        ("-> ...", [Mapping((), None)]),
        ("{} -> {=a, <#b>}", [Mapping(variants(""), variants("a <#b>"))]),
    ],
)
def test_a_nets_signature_has_mappings(text: str, mappings: list[Mapping]) -> None:
    signature = parse_signature(text)
    assert signature == Signature(tuple(mappings))
    assert parse_signature(signature.in_full()) == signature


@pytest.mark.parametrize(
    ("text", "inputs", "outputs"),
    [
        ("(x, <t>) -> (x) | (<p>)", ("x", "<t>"), (("x",), ("<p>",))),
        ("-> (A)", None, (("A",),)),
        ("(x) ->", ("x",), ()),
        ("(x) -> ...", ("x",), None),
        ("() -> ()", (), ((),)),
        ("(z, y, x) -> (c, b, a)", ("z", "y", "x"), (("c", "b", "a"),)),
        ("(a=, <t>=, <#b>) -> (a)", ("a", "<t>", "<#b>"), (("a",),)),
    ],
)
def test_a_boxs_signature_keeps_the_order_of_labels(
    text: str, inputs: tuple[str, ...] | None, outputs: tuple[tuple[str, ...], ...] | None
) -> None:
    signature = parse_box_signature(text)
    assert signature == BoxSignature(inputs, outputs)
    assert parse_box_signature(str(signature)) == signature


@pytest.mark.parametrize("text", ["t -> {a}", "s", "{a} -> t"])
def test_a_signature_alone_knows_no_names(text: str) -> None:
    with pytest.raises(NetSyntaxError, match=r"is named '[st]'"):
        parse_signature(text)


def test_the_text_for_people_is_short_and_the_full_one_can_be_read() -> None:
    outputs = " | ".join(f"{{o{number}}}" for number in range(10))
    text = ", ".join(f"{{i{number}}} -> {outputs}" for number in range(11))
    signature = parse_signature(text)
    assert signature.in_full() == text
    assert str(signature).startswith("{i0} -> {o0} | {o1} | {o2} | ")
    assert str(signature).count("{o7} | and 2 more, {i") == 7
    assert str(signature).endswith(
        "{i7} -> " + outputs.replace(" | {o8} | {o9}", " | and 2 more, and 3 more")
    )
