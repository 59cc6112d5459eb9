"""Texts into nets, patterns, filters and signatures."""

from __future__ import annotations

from callboard.nets.errors import NetSyntaxError
from callboard.nets.language.reading import Reading
from callboard.nets.language.scopes import Boxes, Definitions
from callboard.nets.language.syntax import tree_of
from callboard.nets.terms.expressions import Expression
from callboard.nets.terms.network import Net, RecordFilter
from callboard.nets.terms.patterns import BoxSignature, Pattern, Signature


def parse(text: str, boxes: Boxes | None = None, *, name: str | None = None) -> Net:
    """Return the net that a text in S-Net's language defines last, or the one of that name.

    `boxes` has the functions of the boxes that the text declares, by name: a function, a class that
    can be called, a box whose signature is as declared, or a net in its place. Boxes and nets in it
    may also be used without a declaration. NetWarning tells of names that the text does not use.
    Without `boxes`, declared boxes have no function; that is enough for pictures and type checks.

    Metadata, compiler directives and the bodies of boxes are skipped, with an event in the log.
    """
    definitions = Definitions(text, boxes)
    nets = definitions.term_of(tree_of(text, "program"))
    if not nets:
        raise NetSyntaxError("the text defines no net")
    if name is None:
        name = list(nets)[-1]
    if name not in nets:
        raise NetSyntaxError(f"the text has no net {name!r}, but {', '.join(nets)}")
    net: Net = nets[name]
    return net


def parse_expression(text: str) -> Expression:
    """Return an expression on tags: `n % 2 == 0 && n > m`."""
    expression: Expression = Reading(text).term_of(tree_of(text, "expression"))
    return expression


def parse_pattern(text: str) -> Pattern:
    """Return a pattern: `{a, <n>} if <n > 1>`."""
    pattern: Pattern = Reading(text).term_of(tree_of(text, "pattern"))
    return pattern


def parse_patterns(text: str) -> tuple[Pattern, ...]:
    """Return patterns with commas between them: `{a, <n>} if <n > 1>, {b}`."""
    patterns: tuple[Pattern, ...] = Reading(text).term_of(tree_of(text, "patterns"))
    return patterns


def parse_filter(text: str) -> RecordFilter:
    """Return a filter, with its brackets or without: `{a, <n>} -> {a}; {<m=n+1>}`."""
    rules: RecordFilter = Reading(text).term_of(tree_of(text, "filter_text"))
    return rules


def parse_signature(text: str) -> Signature:
    """Return a net's signature: `{a} | {b} -> {c}, {d} -> ...`."""
    signature: Signature = Reading(text).term_of(tree_of(text, "signature"))
    return signature


def parse_box_signature(text: str) -> BoxSignature:
    """Return a box's signature: `(x, <t>) -> (x) | (<p>)`."""
    signature: BoxSignature = Reading(text).term_of(tree_of(text, "box_signature"))
    return signature
