"""Errors of texts: where, what was expected, and what stands there."""

import builtins
import sys
from typing import Any

import pytest

from callboard.nets.errors import NetSyntaxError
from callboard.nets.language import syntax
from callboard.nets.language.parsing import parse, parse_filter, parse_pattern


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("net a connect b;", (1, 15), "no box or net is named 'b' so far"),
        ("net a connect [] .. ;", (1, 21), "expected a net, found ';'"),
        (
            "net a connect [] [];",
            (1, 18),
            "expected a combinator such as '..' or ';', found '['",
        ),
        ("net a\n connect [] ..\nnet b", (3, 1), "expected a net, found 'net'"),
        ("net a connect [{x} -> if <y > 1 then];", (1, 33), "an operator or '>', found 'then'"),
        ("net a connect [{x} -> if <y> {}];", (1, 30), "expected 'then', found '{'"),
        ("net a ({a} > {b}) connect [];", (1, 12), "expected '->' or '|', found '>'"),
        ("net a (t -> {b}) connect [];", (1, 8), "no type is named 't'"),
        ("net a (s) connect [];", (1, 8), "no signature is named 's'"),
        ("box f ((x) - (y));", (1, 12), "expected '->', found '-'"),
        ("net a connect [{x]} -> ];", (1, 18), "expected ',' or '}', found ']'"),
        ("net a connect [{x} -> {<y=>}];", (1, 27), "expected an expression, found '>'"),
        ("net a connect [{x} -> {<y=z", (1, 28), "'>', but the text ends"),
        ("net a connect [{x} -> {<y=3z>}];", (1, 27), "expected an expression, found '3'"),
        ("net a connect [| {x} ;", (1, 22), "expected ',', 'if' or '|]', found ';'"),
        ("net a connect [] $;", (1, 18), "found '$'"),
        ("net a connect []; /* x", (1, 19), "this comment has no end"),
        ("net a { box f ((x)->(y));\nbox f ((x)->(y)); } connect f;", (2, 5), "defined twice"),
        ("net a connect foo([]);", (1, 15), "only 'ordered' takes a net"),
        ("net a { connect [];", (1, 9), "expected 'box', 'net', 'type', 'typesig' or '}'"),
        ("nets a connect [];", (1, 1), "expected the end, 'box', 'net', "),
        (f"net a connect []@{'9' * 5000};", (1, 18), "a number of 5000 digits is too long"),
    ],
)
def test_an_error_says_where_and_what_was_expected(
    text: str, place: tuple[int, int], reason: str
) -> None:
    with pytest.raises(NetSyntaxError) as caught:
        parse(text)
    error = caught.value
    assert (error.line, error.column) == place
    message, line, caret = str(error).split("\n")
    assert message.startswith(f"line {place[0]}, column {place[1]}: ")
    assert reason in message
    assert line == "    " + text.split("\n")[place[0] - 1]
    assert caret == " " * (place[1] + 3) + "^"


def test_the_caret_stands_below_the_place_after_tabs() -> None:
    with pytest.raises(NetSyntaxError) as caught:
        parse("net a\n\tconnect\t[] ..\t];")
    assert str(caught.value).endswith("\n    \tconnect\t[] ..\t];\n    \t       \t     \t^")


@pytest.mark.parametrize("text", ["", "  \n", "type t = {a};", "box f ((x) -> (y));"])
def test_a_text_without_a_net_is_refused(text: str) -> None:
    with pytest.raises(NetSyntaxError, match="defines no net"):
        parse(text)


def test_a_pattern_ends_where_its_text_does() -> None:
    with pytest.raises(NetSyntaxError, match="expected the end or 'if', found ','"):
        parse_pattern("{a}, {b}")
    with pytest.raises(NetSyntaxError, match=r"expected '\{', but the text ends"):
        parse_pattern("")


def test_a_rule_after_one_without_a_condition_is_refused() -> None:
    with pytest.raises(NetSyntaxError, match="found 'else'"):
        parse_filter("{a} -> {a} else {}")


def test_a_text_is_a_string() -> None:
    with pytest.raises(TypeError, match="a text is expected, not bytes"):
        parse_pattern(b"{a}")  # type: ignore[arg-type]


def test_without_lark_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_lark(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "lark":
            raise ImportError("No module named 'lark'")
        return real(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", without_lark)
    monkeypatch.delitem(sys.modules, "lark", raising=False)
    syntax._parser.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'callboard\[nets\]'"):
        parse_pattern("{a}")
    monkeypatch.undo()
    assert parse_pattern("{a}").variant == {"a"}
