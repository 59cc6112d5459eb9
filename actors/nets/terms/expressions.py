"""Expressions on tags, for guards and filters.

Values are integers and truth values. Division truncates towards zero, and the remainder has the
sign of the dividend, as in C and in S-Net's run time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from callboard.nets.terms.labels import Label

UNARY = ("!", "-", "abs")
BINARY = ("*", "/", "%", "+", "-", "min", "max", "==", "!=", "<", "<=", ">", ">=", "&&", "||")


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, or a truth value."""

    value: int

    def __str__(self) -> str:
        return str(self.value)


@dataclass(frozen=True, slots=True)
class TagValue:
    """The value of a tag of the record."""

    label: Label

    def __str__(self) -> str:
        return self.label.strip("<>")


@dataclass(frozen=True, slots=True)
class Unary:
    """A unary operator, one of UNARY, with its operand."""

    operator: str
    operand: Expression

    def __str__(self) -> str:
        operand = _inner(self.operand)
        if self.operator == "-" and isinstance(self.operand, Constant):
            operand = f"({operand})"  # `-1` is a constant
        return f"{self.operator}{' ' if self.operator == 'abs' else ''}{operand}"


@dataclass(frozen=True, slots=True)
class Binary:
    """A binary operator, one of BINARY, with its operands."""

    operator: str
    left: Expression
    right: Expression

    def __str__(self) -> str:
        return f"{_inner(self.left)} {self.operator} {_inner(self.right)}"


@dataclass(frozen=True, slots=True)
class Conditional:
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression

    def __str__(self) -> str:
        return f"{_inner(self.condition)} ? {_inner(self.then)} : {_inner(self.otherwise)}"


Expression: TypeAlias = Constant | TagValue | Unary | Binary | Conditional


def tags_of(expression: Expression | None) -> frozenset[Label]:
    """Return the labels of the tags that an expression reads."""
    match expression:
        case TagValue(label):
            return frozenset((label,))
        case Unary(_, operand):
            return tags_of(operand)
        case Binary(_, left, right):
            return tags_of(left) | tags_of(right)
        case Conditional(condition, then, otherwise):
            return tags_of(condition) | tags_of(then) | tags_of(otherwise)
        case _:
            return frozenset()


def _inner(expression: Expression) -> str:
    compound = isinstance(expression, (Binary, Conditional))
    return f"({expression})" if compound else str(expression)
