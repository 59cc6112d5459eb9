"""Terms of nets from short texts, made without the product's own builders and parser.

Labels are written one after the other: `x <t>`. Expressions on tags are Python's, with the names of
the tags: `//` is division, and `and`, `or` and `not` stand for the signs of S-Net.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from functools import reduce
from typing import Any

from callboard.nets.terms.expressions import (
    Binary,
    Conditional,
    Constant,
    Expression,
    TagValue,
    Unary,
)
from callboard.nets.terms.labels import Label, Variant
from callboard.nets.terms.network import Box, Feedback, Net, RecordFilter, Serial, Split, Star, Sync
from callboard.nets.terms.patterns import BoxSignature, Item, Pattern, Rule

SIGNS: dict[type[ast.AST], str] = {
    ast.Mult: "*",
    ast.FloorDiv: "/",
    ast.Mod: "%",
    ast.Add: "+",
    ast.Sub: "-",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "&&",
    ast.Or: "||",
    ast.Not: "!",
    ast.USub: "-",
}


def variant(text: str) -> Variant:
    """Return a set of labels."""
    return frozenset(text.split())


def only(text: str, guard: str | None = None) -> Pattern:
    """Return a pattern."""
    return Pattern(variant(text), guard if guard is None else expression(guard))


def box(inputs: str | None, outputs: str | None, function: Callable[..., Any]) -> Box:
    """Return a box. Variants of the output stand apart by `|`: `x | y <t>`; `-` is no output."""
    arguments = None if inputs is None else tuple(inputs.split())
    variants = None if outputs is None else tuple(map(labels, outputs.split("|")))
    return Box(
        function.__name__, BoxSignature(arguments, () if outputs == "-" else variants), function
    )


def labels(text: str) -> tuple[Label, ...]:
    return tuple(text.split())


def filtering(pattern: str, *outputs: Iterable[str]) -> RecordFilter:
    """Return a filter of one rule.

    Each output is a list of items: `x`, `y=x`, `<t>`, `<t=t - 1>`.
    """
    return choosing(pattern, (None, *outputs))


def choosing(pattern: str, *rules: tuple[str | Iterable[str] | None, ...]) -> RecordFilter:
    """Return a filter with rules. Each is a guard, or None, and outputs."""
    made = []
    for guard, *outputs in rules:
        assert guard is None or isinstance(guard, str)
        items = tuple(tuple(map(item, output or ())) for output in outputs)
        made.append(Rule(items, None if guard is None else expression(guard)))
    return RecordFilter(variant(pattern), tuple(made))


def item(text: str) -> Item:
    """Return an item of a filter's output."""
    if not text.startswith("<"):
        label, _, source = text.partition("=")
        return Item(label, source=source or label)
    name, _, value = text[1:-1].partition("=")
    return Item(f"<{name}>", value=expression(value) if value else None)


def cell(*patterns: str | Pattern) -> Sync:
    """Return a synchrocell."""
    return Sync(tuple(only(part) if isinstance(part, str) else part for part in patterns))


def star(body: Net, *exits: str | Pattern, **options: Any) -> Star:
    """Return a serial replication."""
    return Star(body, cell(*exits).patterns, **options)


def feedback(body: Net, *backs: str | Pattern) -> Feedback:
    """Return a feedback."""
    return Feedback(body, cell(*backs).patterns)


def split(body: Net, tag: Label, **options: Any) -> Split:
    """Return an indexed parallel replication."""
    return Split(body, tag, **options)


def serial(*nets: Net) -> Net:
    """Return nets one after the other."""
    return reduce(Serial, nets)


def expression(text: str) -> Expression:
    """Return an expression on tags. The tag `n` is written `n`."""
    return converted(ast.parse(text.strip(), mode="eval").body)


def converted(node: ast.expr) -> Expression:
    match node:
        case ast.Constant(int(value)):
            return Constant(value)
        case ast.Name(name):
            return TagValue(f"<{name}>")
        case ast.UnaryOp(sign, operand):
            return Unary(SIGNS[type(sign)], converted(operand))
        case ast.BinOp(left, sign, right):
            return Binary(SIGNS[type(sign)], converted(left), converted(right))
        case ast.Compare(left, [sign], [right]):
            return Binary(SIGNS[type(sign)], converted(left), converted(right))
        case ast.BoolOp(sign, operands):
            parts = map(converted, operands)
            return reduce(lambda left, right: Binary(SIGNS[type(sign)], left, right), parts)
        case ast.IfExp(condition, then, otherwise):
            return Conditional(converted(condition), converted(then), converted(otherwise))
        case ast.Call(ast.Name("abs"), [operand]):
            return Unary("abs", converted(operand))
        case ast.Call(ast.Name(("min" | "max") as name), [left, right]):
            return Binary(name, converted(left), converted(right))
    raise ValueError(ast.unparse(node))
