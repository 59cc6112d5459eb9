"""Turns syntax trees into terms: labels, patterns, filters, signatures and expressions.

`Reading.term_of` calls, for each node of a tree, the method that is named like it, with the terms
of its children. It does so from the leaves up and from left to right, without recursion: a text may
be deep.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from callboard.nets.language.syntax import syntax_error
from callboard.nets.terms.expressions import (
    Binary,
    Conditional,
    Constant,
    Expression,
    TagValue,
    Unary,
)
from callboard.nets.terms.labels import Label, Variant, binding_tag, tag
from callboard.nets.terms.network import RecordFilter
from callboard.nets.terms.patterns import BoxSignature, Item, Mapping, Pattern, Rule, Signature

if TYPE_CHECKING:
    from lark import Token, Tree

MOST_LEVELS = 250  # of nesting in a text
_OPEN = object()  # the outputs `...`


class Reading:
    """Makes the terms of one text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def term_of(self, tree: Tree[Token]) -> Any:
        """Return the term that a tree stands for."""
        terms: list[Any] = []
        nodes: list[tuple[Any, int, bool]] = [(tree, 0, False)]
        while nodes:
            node, level, children_done = nodes.pop()
            if node is None or isinstance(node, str):
                terms.append(node)
            elif children_done:
                first = len(terms) - len(node.children)
                terms[first:] = [getattr(self, node.data)(*terms[first:])]
            elif level > MOST_LEVELS:
                raise self.too_deep(_first_token(node))
            else:
                nodes.append((node, level, True))
                nodes += [(child, level + 1, False) for child in reversed(node.children)]
        return terms.pop()

    def too_deep(self, token: Token | None) -> Exception:
        """Return the error of a place that is nested too deeply."""
        line, column = (1, 1) if token is None else (token.line or 1, token.column or 1)
        return syntax_error(self.text, line, column, "this is too many levels deep")

    def refuse(self, token: Token, reason: str) -> Exception:
        """Return the error of a token."""
        return syntax_error(self.text, token.line or 1, token.column or 1, reason)

    # Labels

    def label(self, name: str) -> Label:
        return str(name)

    def plain_tag(self, name: str) -> Label:
        return tag(name)

    def binding_tag(self, name: str) -> Label:
        return binding_tag(name)

    def passed_through(self, label: Label) -> Label:
        return label  # the mark `=`, for the published compiler's optimiser, changes no meaning

    # Patterns and filters

    def variant(self, *labels: Label | None) -> Variant:
        return frozenset(label for label in labels if label is not None)

    def guard(self, expression: Expression) -> Expression:
        return expression

    def pattern(self, variant: Variant, guard: Expression | None) -> Pattern:
        return Pattern(variant, guard)

    def patterns(self, *patterns: Pattern) -> tuple[Pattern, ...]:
        return patterns

    def filter(self, rules: RecordFilter | None = None) -> RecordFilter:
        return RecordFilter() if rules is None else rules

    def filter_rules(self, variant: Variant, *rules: Rule | None) -> RecordFilter:
        # An `else` without anything is a rule without outputs; so is one without a condition.
        return RecordFilter(variant, tuple(rule for rule in rules if rule is not None))

    def rule(self, outputs: tuple[tuple[Item, ...], ...]) -> Rule:
        return Rule(outputs)

    def guarded_rule(self, guard: Expression, outputs: tuple[tuple[Item, ...], ...]) -> Rule:
        return Rule(outputs, guard)

    def outputs(self, *outputs: tuple[Item, ...] | None) -> tuple[tuple[Item, ...], ...]:
        return tuple(output for output in outputs if output is not None)

    def output(self, *items: Item | None) -> tuple[Item, ...]:
        return tuple(item for item in items if item is not None)

    def field_item(self, name: str, source: str | None) -> Item:
        return Item(str(name), str(name if source is None else source))

    def tag_item(self, label: Label, value: Expression | None) -> Item:
        return Item(label, value=value)

    # Signatures

    def box_labels(self, *labels: Label | None) -> tuple[Label, ...]:
        return tuple(label for label in labels if label is not None)

    def box_outputs(self, *outputs: tuple[Label, ...]) -> tuple[tuple[Label, ...], ...]:
        return outputs

    def box_signature(self, inputs: tuple[Label, ...] | None, outputs: Any) -> BoxSignature:
        return BoxSignature(inputs, None if outputs is _OPEN else outputs or ())

    def qualified_variant(self, *labels: Label | None) -> Variant:
        return self.variant(*labels)

    def type(self, *parts: Variant | tuple[Variant, ...]) -> tuple[Variant, ...]:
        variants: list[Variant] = []
        for part in parts:
            variants += part if isinstance(part, tuple) else (part,)
        return tuple(variants)

    def open(self) -> object:
        return _OPEN

    def mapping(self, inputs: tuple[Variant, ...], outputs: Any) -> Mapping:
        return Mapping(inputs, None if outputs is _OPEN else outputs or ())

    def initialiser_mapping(self, outputs: Any) -> Mapping:
        return self.mapping((), outputs)

    def signature(self, *parts: Mapping | Signature) -> Signature:
        mappings: list[Mapping] = []
        for part in parts:
            mappings += part.mappings if isinstance(part, Signature) else (part,)
        return Signature(tuple(mappings))

    def type_name(self, name: Token) -> tuple[Variant, ...]:
        raise self.refuse(name, f"no type is named {str(name)!r}")

    def signature_name(self, name: Token) -> Signature:
        raise self.refuse(name, f"no signature is named {str(name)!r}")

    # Expressions

    def number(self, digits: Token) -> Constant:
        return Constant(self.integer(digits))

    def negative_number(self, minus: str, digits: Token) -> Constant:
        return Constant(-self.integer(digits))

    def integer(self, digits: Token) -> int:
        try:
            return int(digits)
        except ValueError:
            raise self.refuse(digits, f"a number of {len(digits)} digits is too long") from None

    def tag_value(self, name: str) -> TagValue:
        return TagValue(tag(name))

    def binding_tag_value(self, name: str) -> TagValue:
        return TagValue(binding_tag(name))

    def unary(self, operator: str, operand: Expression) -> Unary:
        return Unary(str(operator), operand)

    def binary(self, left: Expression, operator: str, right: Expression) -> Binary:
        return Binary(str(operator), left, right)

    def called(self, operator: str, left: Expression, right: Expression) -> Binary:
        return Binary(str(operator), left, right)

    def conditional(
        self, condition: Expression, then: Expression, otherwise: Expression
    ) -> Conditional:
        return Conditional(condition, then, otherwise)


def _first_token(tree: Tree[Token]) -> Token | None:
    left: list[Any] = [tree]
    while left:
        node = left.pop()
        if isinstance(node, str):
            return cast("Token", node)
        left += [] if node is None else reversed(node.children)
    return None
