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

_SKIPPED = re.compile(
    r"(?P<metadata><metadata\s*>.*?</metadata\s*>)|(?P<directive>//!\s*snet[^\n]*)"
    r"|\{\s*(?P<body><<<.*?>>>)\s*\}"
    r"|//[^\n]*|/\*.*?\*/|(?P<unclosed>/\*)",
    re.DOTALL,
)


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
        line, column, found = error.line, error.column, f"found {str(error.token)!r}"
        if error.token.type == "$END":
            line, column = place_in(text, len(text.rstrip()))
            found = "but the text ends"
    except lark.exceptions.UnexpectedCharacters as error:
        line, column, found = error.line, error.column, f"found {error.char!r}"
    expected = expected_words(_accepted(cleared, start), _signs())
    raise syntax_error(text, line, column, f"expected {expected}, {found}")


def syntax_error(text: str, line: int, column: int, reason: str) -> NetSyntaxError:
    """Return the error of a place in a text, with that line and a caret below the place."""
    lines = text.splitlines() or [""]
    shown = lines[min(line, len(lines)) - 1]
    caret = "".join("\t" if sign == "\t" else " " for sign in shown[: column - 1]) + "^"
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

    def blank(match: re.Match[str]) -> str:
        line, column = place_in(text, match.start())
        if match["unclosed"]:
            raise syntax_error(text, line, column, "this comment has no end")
        kind = match.lastgroup
        if kind is not None:
            log.info("text of a net: skipped", what=kind, line=line)
        blanks = re.sub(r"[^\n]", " ", match[0])
        return ";" + blanks[1:] if match["body"] else blanks

    return _SKIPPED.sub(blank, text)


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
