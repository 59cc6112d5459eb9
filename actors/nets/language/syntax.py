"""Texts into trees: comments are blanked, and lark's errors become ours."""

from __future__ import annotations

import contextlib
import re
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from callboard.core.log import log
from callboard.nets.errors import NetSyntaxError
from callboard.nets.language.grammar import GRAMMAR, STARTS, expected_words

if TYPE_CHECKING:
    from lark import Lark, Token, Tree

_MOST_SHOWN = 160  # letters of a line in an error

_SKIPPED = re.compile(
    r"(?P<metadata><metadata\s*>)|(?P<directive>//!\s*snet)|\{\s*(?P<body><<<)"
    r"|(?P<line>//)|(?P<block>/\*)"
)
_ENDS = {
    "metadata": re.compile(r"</metadata\s*>"),
    "directive": re.compile(r"(?=\n)|\Z"),
    "body": re.compile(r">>>\s*\}"),
    "line": re.compile(r"(?=\n)|\Z"),
    "block": re.compile(r"\*/"),
}


def tree_of(text: str, start: str) -> Tree[Token]:
    """Parse a text as one of STARTS."""
    if not isinstance(text, str):
        raise TypeError(f"a text is expected, not {type(text).__name__}")
    parser = _parser()
    import lark  # after _parser(), which says how to install it

    cleared = _without_comments(text)
    try:
        return parser.parse(cleared, start=start)
    except lark.exceptions.UnexpectedToken as error:
        line, column, found = error.line, error.column, f"found {str(error.token)[:_MOST_SHOWN]!r}"
        if error.token.type == "$END":
            line, column = place_in(text, len(text.rstrip()))
            found = "but the text ends"
    except lark.exceptions.UnexpectedCharacters as error:
        line, column, found = error.line, error.column, f"found {error.char!r}"
    expected = expected_words(_accepted(cleared, start), _signs())
    raise syntax_error(text, line, column, f"expected {expected}, {found}")


def syntax_error(text: str, line: int, column: int, reason: str) -> NetSyntaxError:
    """Return the error of a place in a text, with that line and a caret below the place."""
    shown = text.split("\n")[line - 1].rstrip("\r")
    left_out = max(0, column - _MOST_SHOWN // 2) if len(shown) > _MOST_SHOWN else 0
    shown = shown[left_out : left_out + _MOST_SHOWN]
    before = shown[: column - 1 - left_out]
    caret = "".join("\t" if sign == "\t" else " " for sign in before) + "^"
    return NetSyntaxError(
        f"line {line}, column {column}: {reason}\n    {shown}\n    {caret}", line, column
    )


def place_in(text: str, index: int) -> tuple[int, int]:
    """Return the line and the column of an index."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def _accepted(text: str, start: str) -> set[str]:
    """Return the terminals that could stand where the first error is.

    The parser's state at the error does not say: on the way to it, choices may have been dropped.
    """
    import lark

    fed = 0
    parser = _parser().parse_interactive(text, start)
    with contextlib.suppress(lark.exceptions.UnexpectedInput):
        for token in parser.lexer_thread.lex(parser.parser_state):
            parser.feed_token(token)
            fed += 1
    before = _parser().parse_interactive(text, start)
    for token in islice(before.lexer_thread.lex(before.parser_state), fed):
        before.feed_token(token)
    return set(before.accepts())


def _without_comments(text: str) -> str:
    """Blank what the language skips, so that places stay the same."""
    found: list[str] = []
    at = searched = 0
    line = 1  # of `at`
    endless: set[str] = set()  # kinds that have no end from here on
    while match := _SKIPPED.search(text, searched):
        kind = match.lastgroup or ""
        end = None if kind in endless else _ENDS[kind].search(text, match.end())
        if end is None:
            if kind == "block":
                raise syntax_error(text, *place_in(text, match.start()), "this comment has no end")
            endless.add(kind)
            searched = match.start() + 1
            continue
        line += text.count("\n", at, match.start())
        if kind not in ("line", "block"):
            log.info("text of a net: skipped", what=kind, line=line)
        line += text.count("\n", match.start(), end.end())
        blanks = re.sub(r"[^\n]", " ", text[match.start() : end.end()])
        found += text[at : match.start()], ";" + blanks[1:] if kind == "body" else blanks
        at = searched = end.end()
    return "".join((*found, text[at:]))


@cache
def _parser() -> Lark:
    try:
        from lark import Lark
    except ImportError as error:
        raise ImportError(
            "the text language of nets needs lark: pip install 'callboard[nets]'"
        ) from error
    return Lark(GRAMMAR, parser="lalr", start=list(STARTS))


@cache
def _signs() -> dict[str, str]:
    patterns = {terminal.name: terminal.pattern for terminal in _parser().terminals}
    return {name: pattern.value for name, pattern in patterns.items() if pattern.type == "str"}
