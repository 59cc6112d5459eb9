"""Random expressions, patterns and nets, for Hypothesis."""

from typing import Any

from hypothesis import strategies as st

from callboard.nets.terms.expressions import (
    BINARY,
    UNARY,
    Binary,
    Conditional,
    Constant,
    Expression,
    TagValue,
    Unary,
)
from callboard.nets.terms.labels import Label, binding_tag, tag
from callboard.nets.terms.network import (
    Box,
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
from callboard.nets.terms.patterns import BoxSignature, Item, Mapping, Pattern, Rule, Signature

FIELDS = ["x", "y", "type", "net", "größe"]
TAGS = [tag("n"), tag("m"), tag("k"), binding_tag("b")]

tags = st.sampled_from(TAGS)
fields = st.sampled_from(FIELDS)
labels: st.SearchStrategy[Label] = fields | tags
variants = st.frozensets(labels, max_size=4)


def _operated(operands: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return (
        st.builds(Unary, st.sampled_from(UNARY), operands)
        | st.builds(Binary, st.sampled_from(BINARY), operands, operands)
        | st.builds(Conditional, operands, operands, operands)
    )


expressions: st.SearchStrategy[Expression] = st.recursive(
    st.builds(Constant, st.integers(-20, 20) | st.integers()) | st.builds(TagValue, tags),
    _operated,
    max_leaves=8,
)
guards = st.none() | expressions
patterns = st.builds(Pattern, variants, guards)
pattern_tuples = st.lists(patterns, min_size=1, max_size=3).map(tuple)


def _item(label: Label, source: Label, value: Expression | None) -> Item:
    return Item(label, value=value) if label.startswith("<") else Item(label, source)


items = st.builds(_item, labels, fields, guards)
outputs = st.lists(st.lists(items, max_size=3).map(tuple), max_size=3).map(tuple)


@st.composite
def filters(draw: st.DrawFn) -> RecordFilter:
    guarded = draw(st.lists(st.builds(Rule, outputs, expressions), max_size=2))
    last = draw(st.lists(st.builds(Rule, outputs), min_size=not guarded, max_size=1))
    return RecordFilter(draw(variants), (*guarded, *last))


label_tuples = st.lists(labels, max_size=3, unique=True).map(tuple)
box_signatures = st.builds(
    BoxSignature,
    st.none() | label_tuples,
    st.none() | st.lists(label_tuples, max_size=2).map(tuple),
)
variant_tuples = st.lists(variants, max_size=2).map(tuple)
signatures = st.builds(
    Signature,
    st.lists(st.builds(Mapping, variant_tuples, st.none() | variant_tuples), min_size=1, max_size=2)
    .map(tuple),
)  # fmt: skip


@st.composite
def named_nets(draw: st.DrawFn, depth: int = 2) -> NamedNet:
    """Draw a named net, with boxes and nets in it that have names of their own."""
    boxes = draw(st.sets(st.sampled_from("fgh")))
    known: list[Net] = [Box(name, draw(box_signatures)) for name in sorted(boxes)]
    for name in draw(st.sampled_from([["inner", "ordered"], ["min"], []])) if depth else []:
        inner = draw(named_nets(depth - 1))
        known.append(NamedNet(name, inner.body, inner.signature))
    return NamedNet("n", draw(_nets(known)), draw(st.none() | signatures))


def _nets(known: list[Net]) -> st.SearchStrategy[Net]:
    leaves: st.SearchStrategy[Net] = filters() | st.builds(Sync, pattern_tuples)
    if known:
        leaves |= st.sampled_from(known)
    return st.recursive(leaves, _combined, max_leaves=4)


def _combined(nets: st.SearchStrategy[Net]) -> st.SearchStrategy[Net]:
    many = st.lists(nets, min_size=2, max_size=3).map(tuple)
    combined: list[st.SearchStrategy[Any]] = [
        st.builds(Serial, nets, nets),
        st.builds(Choice, many, st.booleans()),
        st.builds(Star, nets, pattern_tuples, st.booleans()),
        st.builds(Split, nets, labels, st.booleans(), st.booleans()),
        st.builds(Feedback, nets, pattern_tuples),
        st.builds(Placed, nets, st.integers(0, 9)),
        st.builds(Ordered, nets),
    ]
    return st.one_of(combined)
