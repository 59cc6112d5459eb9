"""Compiles expressions on tags to Python functions.

Python's syntax tree is built, then written as text. Nothing that a user wrote gets into it but
integers.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

from callboard.nets.errors import NetError, NetTypeError
from callboard.nets.terms.expressions import (
    Binary,
    Conditional,
    Constant,
    Expression,
    TagValue,
    Unary,
)
from callboard.nets.terms.labels import Label

_ARITHMETIC: dict[str, type[ast.operator]] = {"*": ast.Mult, "+": ast.Add, "-": ast.Sub}
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq,
    "!=": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
}
_CALLED = {"min": "min", "max": "max", "/": "_quotient", "%": "_remainder"}


def quotient(dividend: int, divisor: int) -> int:
    """Divide, and truncate towards zero."""
    exact = abs(dividend) // abs(divisor)
    return exact if (dividend < 0) == (divisor < 0) else -exact


def remainder(dividend: int, divisor: int) -> int:
    """Return the remainder of a division, with the sign of the dividend."""
    left = abs(dividend) % abs(divisor)
    return -left if dividend < 0 else left


# The globals of generated code.
GLOBALS: dict[str, Any] = {
    "_quotient": quotient,
    "_remainder": remainder,
    "abs": abs,
    "min": min,
    "max": max,
}


def source_of(expression: Expression, names: Mapping[Label, str]) -> str:
    """Return the Python source of an expression whose value is an `int`, never a `bool`.

    `names` has the Python variable of each tag. The variables must hold integers, and the code must
    run with GLOBALS. A division by zero raises ZeroDivisionError.
    """
    return _source(expression, names, _value)


def condition_of(expression: Expression, names: Mapping[Label, str]) -> str:
    """Return the Python source of an expression whose truth matters, as in guards."""
    return _source(expression, names, _truth)


def compile_expression(expression: Expression, labels: Sequence[Label]) -> Callable[..., int]:
    """Return a function of the tags `labels`, in this order, that computes an expression."""
    names = {label: f"t{index}" for index, label in enumerate(labels)}
    source = f"lambda {', '.join(names.values())}: {source_of(expression, names)}"
    code = compiled(source, "<expression>", "eval")
    function: Callable[..., int] = eval(code, GLOBALS | {"__builtins__": {}})
    return function


def compiled(source: str, name: str, mode: str) -> CodeType:
    """Compile generated source. Raises NetError if it is too deep for Python."""
    try:
        code: CodeType = compile(source, name, mode)
    except (SyntaxError, RecursionError, MemoryError) as error:
        raise _too_deep() from error
    return code


def _source(
    expression: Expression,
    names: Mapping[Label, str],
    write: Callable[[Expression, Mapping[Label, str]], ast.expr],
) -> str:
    try:
        return ast.unparse(write(expression, names))
    except RecursionError as error:
        raise _too_deep() from error


def _too_deep() -> NetError:
    return NetError("an expression is too deep to be compiled")


def _value(expression: Expression, names: Mapping[Label, str]) -> ast.expr:
    match expression:
        case Constant(number):
            return ast.Constant(int(number))
        case TagValue(label):
            if label not in names:
                known = ", ".join(names) or "none"
                raise NetTypeError(f"an expression reads {label}, but the tags here are: {known}")
            return ast.Name(names[label])
        case Unary("-", operand):
            return ast.UnaryOp(ast.USub(), _value(operand, names))
        case Unary("abs", operand):
            return _call("abs", _value(operand, names))
        case Binary(operator, left, right) if operator in _ARITHMETIC:
            operation = _ARITHMETIC[operator]()
            return ast.BinOp(_value(left, names), operation, _value(right, names))
        case Binary("/" | "%" as operator, left, Constant(divisor)) if divisor > 0:
            return _divided(operator, _value(left, names), ast.Constant(divisor))
        case Binary(operator, left, right) if operator in _CALLED:
            return _call(_CALLED[operator], _value(left, names), _value(right, names))
        case Conditional(condition, then, otherwise):
            return ast.IfExp(
                _truth(condition, names), _value(then, names), _value(otherwise, names)
            )
        case _:
            return ast.IfExp(_truth(expression, names), ast.Constant(1), ast.Constant(0))


def _truth(expression: Expression, names: Mapping[Label, str]) -> ast.expr:
    match expression:
        case Unary("!", operand):
            return ast.UnaryOp(ast.Not(), _truth(operand, names))
        case Binary("&&", left, right):
            return ast.BoolOp(ast.And(), [_truth(left, names), _truth(right, names)])
        case Binary("||", left, right):
            return ast.BoolOp(ast.Or(), [_truth(left, names), _truth(right, names)])
        case Binary(operator, left, right) if operator in _COMPARISONS:
            comparison = _COMPARISONS[operator]()
            return ast.Compare(_value(left, names), [comparison], [_value(right, names)])
        case Unary("-" | "abs") | Constant() | TagValue() | Conditional():
            return _value(expression, names)
        case Binary(operator) if operator in _ARITHMETIC or operator in _CALLED:
            return _value(expression, names)
        case _:
            raise TypeError(f"expected an expression, got {expression!r}")


def _divided(operator: str, dividend: ast.expr, divisor: ast.expr) -> ast.expr:
    """Divide by a positive constant, without a call if the dividend is a variable.

    Python's own operators round down, so they are right for dividends that are not negative.
    """
    if not isinstance(dividend, ast.Name):
        return _call(_CALLED[operator], dividend, divisor)
    operation = ast.FloorDiv() if operator == "/" else ast.Mod()
    positive = ast.Compare(dividend, [ast.GtE()], [ast.Constant(0)])
    mirrored = ast.BinOp(ast.UnaryOp(ast.USub(), dividend), operation, divisor)
    return ast.IfExp(
        positive,
        ast.BinOp(dividend, operation, divisor),
        ast.UnaryOp(ast.USub(), mirrored),
    )


def _call(name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name), list(arguments), [])
