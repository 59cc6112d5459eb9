"""Expressions on tags, guards, patterns and filters, as texts."""

import pytest

from callboard.nets.language.parsing import (
    parse_expression,
    parse_filter,
    parse_pattern,
    parse_patterns,
)
from callboard.nets.terms.expressions import Binary, Conditional, Constant, TagValue, Unary
from callboard.nets.terms.network import RecordFilter
from callboard.nets.terms.patterns import Item, Pattern, Rule

A, B, C = (TagValue(f"<{name}>") for name in "abc")


@pytest.mark.parametrize(
    ("text", "bracketed"),
    [
        ("a + b * c", "a + (b * c)"),
        ("a - b - c", "(a - b) - c"),
        ("a / b % c", "(a / b) % c"),
        ("a * b min c", "a * (b min c)"),
        ("a max b min c", "(a max b) min c"),
        ("a == b < c", "a == (b < c)"),
        ("a < b + c", "a < (b + c)"),
        ("a && b || c && a", "(a && b) || (c && a)"),
        ("a && b == c", "a && (b == c)"),
        ("!a == b", "(!a) == b"),
        ("-a * b", "(-a) * b"),
        ("abs a min b", "(abs a) min b"),
        ("a ? b : c ? a : b", "a ? b : (c ? a : b)"),
        ("a || b ? a : b", "(a || b) ? a : b"),
        ("min(a, b) + max(a, b + c)", "(a min b) + (a max (b + c))"),
        ("min(a, b) max c", "(a min b) max c"),
        ("a min (b)", "a min b"),
        ("a min -b", "a min (-b)"),
    ],
)
def test_operators_bind_as_in_c_and_min_and_max_before_products(text: str, bracketed: str) -> None:
    assert parse_expression(text) == parse_expression(bracketed)


def test_an_expression_has_the_value_of_its_text() -> None:
    assert parse_expression("a - 2 >= #b ? abs -c : !a") == Conditional(
        Binary(">=", Binary("-", A, Constant(2)), TagValue("<#b>")),
        Unary("abs", Unary("-", C)),
        Unary("!", A),
    )


def test_a_minus_before_digits_is_the_numbers_and_before_parentheses_an_operator() -> None:
    assert parse_expression("-2") == Constant(-2)
    assert parse_expression("-(2)") == Unary("-", Constant(2))
    assert parse_expression("- - 2") == Unary("-", Constant(-2))
    assert parse_expression("a -2") == Binary("-", A, Constant(2))


@pytest.mark.parametrize(
    ("text", "guard"),
    [
        ("<a>", A),
        ("<a > b>", Binary(">", A, B)),
        ("<a>b>", Binary(">", A, B)),
        ("<a >= b>", Binary(">=", A, B)),
        ("<a > -1>", Binary(">", A, Constant(-1))),
        ("<a > !b>", Binary(">", A, Unary("!", B))),
        ("<a > (b > c)>", Binary(">", A, Binary(">", B, C))),
        ("<a > #b>", Binary(">", A, TagValue("<#b>"))),
        ("<a > abs b>", Binary(">", A, Unary("abs", B))),
    ],
)
def test_a_greater_sign_closes_a_guard_unless_an_operand_follows(text: str, guard: object) -> None:
    assert parse_pattern("{x} if " + text) == Pattern(frozenset("x"), guard)  # type: ignore[arg-type]
    assert parse_patterns("{x} if " + text + ", {y}")[0].guard == guard
    rule = parse_filter("[{x} -> if " + text + " then {x} else ]").rules[0]
    assert rule.guard == guard


def test_patterns_have_fields_tags_and_binding_tags() -> None:
    assert parse_pattern("{}") == Pattern(frozenset())
    assert parse_pattern("{ a , <b>,<#c> }") == Pattern(frozenset(("a", "<b>", "<#c>")))


def test_a_label_may_be_a_word_of_the_language() -> None:
    words = "box, net, type, typesig, connect, if, then, else, min, max, abs, ordered"
    text = "{" + words + ", <type>, <min>}"
    assert parse_pattern(text).variant == {*words.split(", "), "<type>", "<min>"}


def test_a_filter_is_read_with_its_brackets_or_without() -> None:
    bare = "{a, <n>} -> {a}; {b=a, <n>, <m=n+1>}"
    assert parse_filter(bare) == parse_filter(f"[{bare}]")
    assert parse_filter(bare) == RecordFilter(
        frozenset(("a", "<n>")),
        (
            Rule(
                (
                    (Item("a", "a"),),
                    (Item("b", "a"), Item("<n>"), Item("<m>", value=parse_expression("n + 1"))),
                )
            ),
        ),
    )


def test_an_empty_filter_is_the_identity() -> None:
    assert parse_filter("[]").is_identity
    assert parse_filter("[{} -> {}]").is_identity


def test_a_filter_without_output_swallows() -> None:
    assert parse_filter("[{x} -> ]") == RecordFilter(frozenset("x"), (Rule(()),))


def test_conditions_of_a_filter_are_tried_one_after_the_other() -> None:
    rules = parse_filter("[{<n>} -> if <n > 1> then {<n>}; {} else if <n> then else {<m=n>}]").rules
    assert [str(rule) for rule in rules] == ["if <n > 1> then {<n>}; {}", "if <n> then ", "{<m=n>}"]


def test_a_filter_may_end_with_a_condition() -> None:
    assert parse_filter("{<n>} -> if <n> then {}").rules == (Rule(((),), TagValue("<n>")),)
    assert len(parse_filter("{<n>} -> if <n> then {} else").rules) == 2


def test_several_tags_may_share_a_pair_of_angle_brackets() -> None:
    together = parse_filter("{<a>} -> {<b=a > 1, #c=2, d>, x=x}")
    assert together == parse_filter("{<a>} -> {<b=a > 1>, <#c=2>, <d>, x}")
