"""Expressions compiled to Python functions, against C's rules."""

import ast
import operator
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard.nets.errors import NetError, NetSyntaxError, NetTypeError
from callboard.nets.language.compiling import GLOBALS, compile_expression, condition_of, source_of
from callboard.nets.language.parsing import parse_expression
from callboard.nets.terms.expressions import (
    Binary,
    Conditional,
    Constant,
    Expression,
    TagValue,
    Unary,
)
from tests.nets.language.random_terms import TAGS, expressions

OPERATORS: dict[str, Callable[[int, int], int]] = {
    "*": operator.mul,
    "+": operator.add,
    "-": operator.sub,
    "min": min,
    "max": max,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def value_of(expression: Expression, tags: Mapping[str, int]) -> int:
    """Compute an expression as C would, with integers of any size."""
    match expression:
        case Constant(value):
            return value
        case TagValue(label):
            return tags[label]
        case Unary("!", operand):
            return int(value_of(operand, tags) == 0)
        case Unary("-", operand):
            return -value_of(operand, tags)
        case Unary("abs", operand):
            value = value_of(operand, tags)
            return value if value >= 0 else -value
        case Binary("&&", left, right):
            return int(value_of(left, tags) != 0 and value_of(right, tags) != 0)
        case Binary("||", left, right):
            return int(value_of(left, tags) != 0 or value_of(right, tags) != 0)
        case Binary("/" | "%" as sign, left, right):
            dividend, divisor = value_of(left, tags), value_of(right, tags)
            quotient = dividend // divisor
            if quotient < 0 and quotient * divisor != dividend:
                quotient += 1
            return quotient if sign == "/" else dividend - quotient * divisor
        case Binary(sign, left, right):
            return int(OPERATORS[sign](value_of(left, tags), value_of(right, tags)))
        case Conditional(condition, then, otherwise):
            return value_of(then if value_of(condition, tags) else otherwise, tags)
    raise AssertionError(expression)


def outcome(function: Callable[..., int], *arguments: object) -> int | type[Exception]:
    try:
        return function(*arguments)
    except ZeroDivisionError as error:
        return type(error)


@given(expressions, st.lists(st.integers(-3, 3) | st.integers(), min_size=4, max_size=4))
def test_compiled_expressions_equal_c(expression: Expression, values: list[int]) -> None:
    computed = outcome(compile_expression(expression, TAGS), *values)
    assert computed == outcome(value_of, expression, dict(zip(TAGS, values, strict=True)))
    assert type(computed) in (int, type)


@given(expressions, st.lists(st.integers(-3, 3), min_size=4, max_size=4))
def test_a_condition_is_true_unless_zero(expression: Expression, values: list[int]) -> None:
    names = dict(zip(TAGS, "abcd", strict=True))
    variables = dict(zip("abcd", values, strict=True))
    condition = condition_of(expression, names)
    value = source_of(expression, names)
    assert outcome(lambda: int(bool(eval(condition, GLOBALS | variables)))) == outcome(
        lambda: int(bool(eval(value, GLOBALS | variables)))
    )


@pytest.mark.parametrize(
    ("dividend", "divisor", "quotient", "remainder"),
    [(7, 2, 3, 1), (-7, 2, -3, -1), (7, -2, -3, 1), (-7, -2, 3, -1), (-6, 2, -3, 0)],
)
def test_division_truncates(dividend: int, divisor: int, quotient: int, remainder: int) -> None:
    for sign, expected in (("/", quotient), ("%", remainder)):
        by_tag = compile_expression(parse_expression(f"n {sign} m"), ["<n>", "<m>"])
        by_constant = compile_expression(parse_expression(f"n {sign} {divisor}"), ["<n>"])
        of_sum = compile_expression(parse_expression(f"(n + 0) {sign} {divisor}"), ["<n>"])
        assert by_tag(dividend, divisor) == by_constant(dividend) == of_sum(dividend) == expected


@pytest.mark.parametrize("text", ["n / 0", "n % 0", "n / m", "n % (m * 2)"])
def test_a_division_by_zero_raises(text: str) -> None:
    with pytest.raises(ZeroDivisionError):
        compile_expression(parse_expression(text), ["<n>", "<m>"])(1, 0)


@pytest.mark.parametrize("text", ["0 && 1 / 0", "1 || 1 / 0", "1 ? 2 : 1 / 0", "!(0 && 1 / 0)"])
def test_operands_are_computed_only_if_needed(text: str) -> None:
    compile_expression(parse_expression(text), [])()


def test_arguments_come_in_the_order_of_the_labels() -> None:
    assert compile_expression(parse_expression("n - #b"), ["<#b>", "<n>"])(1, 10) == 9


def test_a_tag_that_is_not_there_is_an_error() -> None:
    with pytest.raises(NetTypeError, match="reads <k>, but the tags here are: <n>, <m>"):
        compile_expression(parse_expression("n + k"), ["<n>", "<m>"])


def test_no_label_gets_into_the_source() -> None:
    label = "<__import__('os').system('true')>"
    source = source_of(Binary("+", TagValue(label), Constant(True)), {label: "v"})
    assert source == "v + 1"
    assert ast.parse(source)


def test_a_long_sum_is_compiled_and_a_deep_expression_refused() -> None:
    total = parse_expression(" + ".join(["n"] * 200))
    assert compile_expression(total, ["<n>"])(2) == 400
    with pytest.raises(NetSyntaxError, match="levels deep"):
        parse_expression("n" + " + n" * 5_000)
    right: Expression = TagValue("<n>")
    for _ in range(250):
        right = Binary("-", TagValue("<n>"), right)
    with pytest.raises(NetError, match="too deep"):
        compile_expression(right, ["<n>"])
