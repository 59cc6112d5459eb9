"""Syntax errors have a place, the expected symbols and the text found."""

import builtins
import sys
from typing import Any

import pytest

from callboard.nets import Net, infer, ordered
from callboard.nets.errors import NetSyntaxError, NetTypeError
from callboard.nets.language import syntax
from callboard.nets.language.parsing import parse, parse_filter, parse_pattern


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("net a connect b;", (1, 15), "no box or net is named 'b' so far"),
        ("net a connect [] .. ;", (1, 21), "expected a net, found ';'"),
        ("net a connect [] [];", (1, 18), "expected a combinator such as '..' or ';', found '['"),
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
def test_an_error_has_place_and_expectation(text: str, place: tuple[int, int], reason: str) -> None:
    with pytest.raises(NetSyntaxError) as caught:
        parse(text)
    error = caught.value
    assert (error.line, error.column) == place
    message, line, caret = str(error).split("\n")
    assert message.startswith(f"line {place[0]}, column {place[1]}: ")
    assert reason in message
    assert line == "    " + text.split("\n")[place[0] - 1][:160]
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
    with pytest.raises(TypeError, match="expected a string, got bytes"):
        parse_pattern(b"{a}")  # type: ignore[arg-type]


def test_without_lark_the_error_names_the_package_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
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


MANY = 100_000  # a time that grew with the square of this would be hours


@pytest.mark.parametrize("text", ["// c\n", "/* c */", "//!snet c\n", "<metadata>c</metadata >"])
def test_any_number_of_comments_is_skipped(text: str) -> None:
    net = parse(text * MANY + "net n connect [];")
    assert str(net) == "n"
    with pytest.raises(NetSyntaxError, match=f"line {text.count(chr(10)) * MANY + 1}, ") as caught:
        parse(text * MANY + "net n connect ];")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("text", ["<metadata>", "<metadata ", "{<<<", "{ ", "/* ", "//!", ">>>"])
def test_beginnings_without_an_end_are_refused(text: str) -> None:
    with pytest.raises(NetSyntaxError) as caught:
        parse(text * MANY + "\nnet n connect ];")
    assert (caught.value.line, caught.value.column) in [(1, 1), (2, 15)]


DEEP = [
    ("net n connect ", "(", "[]", ")*{y}", ";"),
    ("net n connect ", "", "[]", "!<y>", ";"),
    ("net n connect ", "", "[]", "@1", ";"),
    ("net n connect ", "ordered(", "[]", ")", ";"),
    ("net n connect ", "([] | ", "[]", ")", ";"),
    ("net n connect ", "([] .. ", "[]", ")\\{y}", ";"),
    ("", "net n { ", "", "} connect [];", ""),
    ("net n connect [{<x>} -> {<x=", "-", "x", "", ">}];"),
    ("net n connect [{<x>} -> {<x=", "", "x", "+x", ">}];"),
    ("net n connect [{<x>} -> {<x=", "x ? 1 : ", "x", "", ">}];"),
    ("net n connect []*{x} if <", "!", "x", "", ">;"),
]


@pytest.mark.parametrize(("before", "left", "middle", "right", "after"), DEEP)
@pytest.mark.parametrize("levels", [300, 10_000])
def test_a_text_that_is_too_deep_is_refused_where_it_is(
    before: str, left: str, middle: str, right: str, after: str, levels: int
) -> None:
    with pytest.raises(NetSyntaxError, match="levels deep") as caught:
        parse(before + left * levels + middle + right * levels + after)
    assert caught.value.line == 1
    assert caught.value.column is not None


@pytest.mark.parametrize(("before", "left", "middle", "right", "after"), DEEP)
def test_many_levels_are_a_net(before: str, left: str, middle: str, right: str, after: str) -> None:
    levels = 80
    assert str(parse(before + left * levels + middle + right * levels + after)) == "n"


@pytest.mark.parametrize("body", ["n{} .. n{}", "n{} | n{}", "(n{} .. n{})*{{y}}"])
def test_nets_within_nets_have_a_bound(body: str) -> None:
    text = "net n0 connect [{x} -> {x}];\n"
    text += "".join(f"net n{at + 1} connect {body.format(at, at)};\n" for at in range(40))
    with pytest.raises(NetSyntaxError, match=r"line 1\d, .*has more than 20,000 parts"):
        parse(text)
    chain = "".join(f"net m{at + 1} connect m{at} *{{y}};" for at in range(150))
    with pytest.raises(NetSyntaxError, match="levels deep"):
        parse("net m0 connect [];" + chain)


def test_a_net_that_is_too_deep_is_a_type_error() -> None:
    net: Net = parse("net n connect [{x} -> {x}];")
    for _ in range(5000):
        net = ordered(net)
    with pytest.raises(NetTypeError, match="too deep"):
        infer(net)


def test_a_long_line_is_cut_around_the_place_of_its_error() -> None:
    with pytest.raises(NetSyntaxError) as caught:
        parse("net n connect " + "[] .. " * 5000 + "];" + " .. []" * 5000)
    _, shown, caret = str(caught.value).split("\n")
    assert shown[caret.index("^")] == "]"
    assert len(shown) < 200
