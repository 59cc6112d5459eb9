"""The grammar of the text language, and the syntax tree of a text.

Comments are blanked, and lark's errors become ours.

A label may be any name. The name of a net or a box must not be a word of definitions.

`GT` is a `>` that something follows which can begin an operand, and `_CLOSE` is any other. So
`{a} if <x > 1>` needs no parentheses.

Postfix combinators bind most tightly, then `..`, then `||`, then `|`.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING

from callboard.core.log import log
from callboard.nets.errors import NetSyntaxError

if TYPE_CHECKING:
    from lark import Lark, Token, Tree


STARTS = (
    "program",
    "pattern",
    "patterns",
    "filter_text",
    "signature",
    "box_signature",
    "expression",
)

GRAMMAR = r"""
program: _definition*

_definition: box | net | declared_net | type_definition | signature_definition
box: _BOX NAME "(" box_signature ")" ";"
net: _NET NAME ["(" signature ")"] [inner_scope _definition* "}"] _CONNECT network ";"
declared_net: _NET NAME ["(" signature ")"] ";"
type_definition: _TYPE NAME "=" type ";"
signature_definition: _TYPESIG NAME "=" signature ";"
inner_scope: "{"

// Nets

?network: choice
?choice: _choice_branch ("|" _choice_branch)*
_choice_branch: ordered_choice | typed_branch
?ordered_choice: serial ("||" (serial | typed_branch))*
    | typed_branch ("||" (serial | typed_branch))+
typed_branch: "<" [type] _CLOSE serial
?serial: _operand (".." _operand)*
_operand: star | ordered_star | split | ordered_split | placed_split | ordered_placed_split
    | feedback | placed | reference | function | filter | sync | "(" network ")"
star: _operand "*" patterns
ordered_star: _operand "**" patterns
split: _operand "!" _split_label
ordered_split: _operand "!!" _split_label
placed_split: _operand "!" "@" _split_label
ordered_placed_split: _operand "!!" "@" _split_label
feedback: _operand "\\" patterns
placed: _operand "@" INTEGER
reference: NAME
function: NAME "(" network ")"
_split_label: label

sync: "[|" patterns "|]"
?filter_text: filter | filter_rules
filter: "[" "]" | "[" filter_rules "]"
filter_rules: variant "->" _rules
_rules: rule | guarded_rule [_ELSE _rules]
rule: outputs
guarded_rule: guard _THEN outputs
outputs: [output (";" output)*]
output: "{" [_item ("," _item)*] "}"
_item: field_item | "<" tag_item ("," tag_item)* _CLOSE
field_item: LABEL ["=" LABEL]
tag_item: _tag_name ["=" expression]
_tag_name: plain_tag | binding_tag

// Patterns and types

patterns: pattern ("," pattern)*
pattern: variant [guard]
guard: _IF "<" expression _CLOSE
variant: "{" [label ("," label)*] "}"
label: LABEL | "<" _tag_name _CLOSE
plain_tag: LABEL
binding_tag: "#" LABEL

type: _type_part ("|" _type_part)*
_type_part: qualified_variant | type_name
type_name: NAME
qualified_variant: "{" [right_label ("," right_label)*] "}"
?right_label: label | "=" label -> passed_through

signature: _mapping ("," _mapping)*
_mapping: mapping | initialiser_mapping | signature_name
mapping: type "->" [type | open]
initialiser_mapping: "->" [type | open]
signature_name: NAME
open: "..."

box_signature: [box_labels] "->" [open | box_outputs]
box_outputs: box_labels ("|" box_labels)*
box_labels: "(" [box_label ("," box_label)*] ")"
?box_label: label | label "=" -> passed_through

// Expressions

?expression: either | either "?" expression ":" expression -> conditional
?either: both | either OR both -> binary
?both: equality | both AND equality -> binary
?equality: comparison | equality (EQ | NE) comparison -> binary
?comparison: sum | comparison (LE | GE | LT | GT) sum -> binary
?sum: product | sum (PLUS | MINUS) product -> binary
?product: extreme | product (TIMES | OVER | MODULO) extreme -> binary
?extreme: unary | extreme (MIN | MAX) unary -> binary
?unary: number | signed
?signed: negative_number | negation | other
negative_number: MINUS INTEGER
negation: MINUS signed -> unary
number: INTEGER
?other: tag_value | "(" expression ")" | NOT unary -> unary | ABS unary -> unary
    | (MIN | MAX) "(" expression "," expression ")" -> called
tag_value: TAG | "#" LABEL -> binding_tag_value

OR: "||"
AND: "&&"
EQ: "=="
NE: "!="
LE: "<="
GE: ">="
LT: "<"
GT.2: />(?=\s*(?:!\s*)*(?:(?!then\b)[^\W\d]|[0-9]|[(#]|-(?!>)))/
PLUS: "+"
MINUS: "-"
TIMES: "*"
OVER: "/"
MODULO: "%"
MIN.2: /min\b/
MAX.2: /max\b/
ABS.2: /abs\b/
NOT: "!"
_CLOSE: ">"

_BOX: /box\b/
_NET: /net\b/
_TYPE: /type\b/
_TYPESIG: /typesig\b/
_CONNECT: /connect\b/
_IF: /if\b/
_THEN: /then\b/
_ELSE: /else\b/

NAME: /(?!(?:box|net|type|typesig|connect|if|then|else)\b)[^\W\d]\w*/
LABEL: /[^\W\d]\w*/
TAG: /(?!(?:abs|min|max)\b)[^\W\d]\w*/
INTEGER: /[0-9]+\b/

%ignore /\s+/
"""

_WORDS = {
    "NAME": "a name",
    "LABEL": "a label",
    "INTEGER": "a number",
    "_CLOSE": "'>'",
    "$END": "the end",
    "_BOX": "'box'",
    "_NET": "'net'",
    "_TYPE": "'type'",
    "_TYPESIG": "'typesig'",
    "_CONNECT": "'connect'",
    "_IF": "'if'",
    "_THEN": "'then'",
    "_ELSE": "'else'",
}
_COMBINATORS = {"..", "|", "||", "*", "**", "!", "!!", "\\", "@"}
_OPERANDS = {"TAG", "INTEGER", "#", "(", "!", "-", "ABS", "MIN", "MAX"}
_OPERATORS = {
    "||",
    "&&",
    "==",
    "!=",
    "<=",
    ">=",
    "<",
    "GT",
    "+",
    "-",
    "*",
    "/",
    "%",
    "MIN",
    "MAX",
    "?",
}


def expected_words(terminals: Collection[str], signs: dict[str, str]) -> str:
    """Describe the tokens that could stand here. `signs` has the text of those that are signs."""
    texts = {signs.get(terminal, terminal) for terminal in terminals}
    words = set()
    for text in texts:
        if ".." in texts and text in _COMBINATORS:
            words.add("a combinator such as '..'")
        elif "[|" in texts and text in {"NAME", "[", "[|", "(", "<"}:
            words.add("a net")
        elif "TAG" in texts and text in _OPERANDS:
            words.add("an expression")
        elif "?" in texts and text in _OPERATORS:
            words.add("an operator")
        else:
            words.add(_WORDS.get(text, f"'{text}'"))
    *most, last = sorted(words, key=lambda word: (word[0] == "'", word))
    return f"{', '.join(most)} or {last}" if most else last


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
        raise TypeError(f"expected a string, got {type(text).__name__}")
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
