"""Docstrings are plain sentences with code in single backticks, and Google's three sections.

`Args:` names parameters only, each at most once; it may leave out some. Sentences, also those of
comments, begin with a subject.
"""

import ast
import re
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import pytest

from tests.sources import sources
from tests.test_english import NOUN, sentences

DOCSTRING = re.compile(r'^\s*"""(.*?)"""', re.MULTILINE | re.DOTALL)
# Lines that are comments, one after the other, and comments behind code.
COMMENT = re.compile(r"(?:^[ \t]*(?:#|//)(?!\w).*\n?)+|[ \t]{2}(?:#|//) .*$", re.MULTILINE)
COMMENT_MARK = re.compile(r"^\s*(?:#:?|//+) ?", re.MULTILINE)
# The markup of reStructuredText, and the sections of Google's style that are not used here.
FOREIGN = re.compile(
    r"``|^\s*:\w+[^:`\n]*: |^ *(?:Arguments|Attributes|Examples?|Notes?|Parameters|Yields):$",
    re.MULTILINE,
)
ARGS = re.compile(r"^Args:\n((?: +\S.*\n?|\n)+)", re.MULTILINE)
ARGUMENT = re.compile(r"^ {4}\*{0,2}(\w+): ", re.MULTILINE)
CYTHON_DEF = re.compile(
    r"^( *)(?:(?:async )?def|cpdef\b[^(\n]*?|cdef class|class) *(\w+)(?=[(:])"
    r'(?:\(((?:[^()]|\([^()]*\))*)\))?[^:\n]*:\n\s*"""(.*?)"""',
    re.MULTILINE | re.DOTALL,
)
CYTHON_MAKER = re.compile(r"^ +def __c?init__\(((?:[^()]|\([^()]*\))*)\)", re.MULTILINE)


def foreign(text: str) -> list[str]:
    """List the markup in a source's docstrings that is not ours."""
    return [found for docstring in DOCSTRING.findall(text) for found in FOREIGN.findall(docstring)]


def documented(docstring: str) -> list[str] | None:
    """Return the parameters in the `Args:` of a docstring, or None if it has no such block."""
    block = ARGS.search(cleandoc(docstring))
    return ARGUMENT.findall(block[1]) if block else None


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names of a function's parameters."""
    given = function.args
    last = [each for each in (given.vararg, given.kwarg) if each]
    return [each.arg for each in [*given.posonlyargs, *given.args, *given.kwonlyargs, *last]]


def cython_parameters(text: str) -> list[str]:
    """Return the names in a parameter list of Cython, in which types come before or after."""
    bare = re.sub(r"\[[^][]*\]|\([^()]*\)", "", re.sub(r"\[[^][]*\]", "", text))
    names = [re.split(r"[=:]|\bnot None", part)[0].split() for part in bare.split(",")]
    return [name[-1].lstrip("*") for name in names if name and name[-1].strip("*/")]


def fields(node: ast.ClassDef, names: list[str]) -> list[str]:
    """Return the fields of a dataclass, and those described ones that a base may have."""
    own = [
        one.target.id
        for one in node.body
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
        if not one.target.id.startswith("_") and "ClassVar" not in ast.dump(one.annotation)
    ]
    return own + [name for name in names if node.bases and name not in own]


def described(path: Path, text: str) -> Iterator[tuple[str, list[str], list[str]]]:
    """Yield each function or class with `Args:`: its name, its parameters, those described."""
    if path.suffix == ".pyx":
        for found in CYTHON_DEF.finditer(text):
            names = documented(found[4])
            if names is not None:
                body = re.split(r"^\S", text[found.end() :], maxsplit=1, flags=re.MULTILINE)[0]
                is_class = "class " in found[0][:20]
                maker = CYTHON_MAKER.search(body) if is_class else None
                given = maker[1] if maker else "" if is_class else found[3]
                yield found[2], cython_parameters(given or ""), names
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names = documented(ast.get_docstring(node) or "")
            if names is None:
                continue
            if isinstance(node, ast.ClassDef):
                functions = [one for one in node.body if isinstance(one, ast.FunctionDef)]
                makers = [one for one in functions if one.name == "__init__"]
                yield node.name, parameters(makers[0]) if makers else fields(node, names), names
            else:
                yield node.name, parameters(node), names


def stale(path: Path, text: str) -> list[str]:
    """List the functions and classes whose `Args:` name what is no parameter, or one twice."""
    return [
        name
        for name, given, names in described(path, text)
        if len(set(names)) < len(names) or not (set(names) <= {*given} or "kwargs" in given)
    ]


def test_docstrings_have_no_markup_of_another_dialect(root: Path) -> None:
    files = [*sources(root), *(path.relative_to(root) for path in root.glob("examples/**/*.py"))]
    found = {str(path): foreign((root / path).read_text()) for path in files}
    assert {path: markup for path, markup in found.items() if markup} == {}


def test_args_are_parameters_and_each_is_described_at_most_once(root: Path) -> None:
    files = [path for path in sources(root) if path.suffix in {".py", ".pyi", ".pyx"}]
    found = {str(path): stale(path, (root / path).read_text()) for path in files}
    assert {path: names for path, names in found.items() if names} == {}


BLOCK = (
    '"""Run.\n\n    Args:\n        a: One.\n        {}: Two.\n            More: of it.\n    """\n'
)


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("a.py", "def f(a, *, b=1):\n    " + BLOCK.format("b"), []),
        ("a.py", "def f(a, *b, **c):\n    " + BLOCK.format("d"), ["f"]),
        ("a.py", "class A(B):\n    " + BLOCK.format("b") + "    a: int\n    _c: int", []),
        ("a.pyi", "class A:\n    " + BLOCK.format("c") + "    a: int\n    b: int", ["A"]),
        ("a.py", "def f(a, b):\n    " + BLOCK.format("a"), ["f"]),
        ("a.py", "class A:\n    " + BLOCK.format("b") + "    def __init__(self, a, b): ...", []),
        (
            "a.pyx",
            "    def f(self, int a=f(1), b: list[int, str] = None):\n    " + BLOCK.format("b"),
            [],
        ),
        ("a.pyx", "cpdef int f(A a not None, *, c) except -1:\n    " + BLOCK.format("b"), ["f"]),
        ("a.pyx", "cpdef int f(A a not None, *, b, c=0) except -1:\n    " + BLOCK.format("b"), []),
        (
            "a.pyx",
            "cdef class A(B):\n    " + BLOCK.format("b") + "    def __init__(self, a, int b): pass",
            [],
        ),
        ("a.py", 'def f(a):\n    """Args: none."""', []),
    ],
)
def test_stale_args_are_found(path: str, text: str, found: list[str]) -> None:
    assert stale(Path(path), text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Run ``build``."""', ["``", "``"]),
        ('"""Run.\n\n    :param build: to be run\n    """', ["    :param build: "]),
        ('    """Run.\n\n    Yields:\n        Rows.\n    """', ["    Yields:"]),
        (
            '"""Run `build(name: str)`.\n\n    Raises:\n        ConfigError: It says why.\n    """',
            [],
        ),
        ("x = '``'", []),
    ],
)
def test_markup_of_another_dialect_is_found(text: str, found: list[str]) -> None:
    assert [markup.strip("\n") for markup in foreign(text)] == found


def prose(text: str) -> Iterator[str]:
    """Yield the sentences of a source's docstrings and comments."""
    for docstring in DOCSTRING.findall(text):
        yield from sentences(cleandoc(docstring))
    for comment in COMMENT.findall(text):
        yield from sentences(cleandoc(COMMENT_MARK.sub("", comment)))


def test_no_sentence_begins_with_a_question_word_as_its_subject(root: Path) -> None:
    texts = {path: (root / path).read_text() for path in sources(root)}
    found = {str(path): [s for s in prose(text) if NOUN.match(s)] for path, text in texts.items()}
    assert {path: wrong for path, wrong in found.items() if wrong} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Run.\n\n    What is left\n    waits. Then it ends.\n    """', ["What is left waits."]),
        (
            "    # It ends. Who asks\n    # waits.\n    #\n    # Of all, one.\n",
            ["Who asks waits.", "Of all, one."],
        ),
        ("x = 1;  // What x is.\n// Whole.\n", ["What x is."]),
        ('#pragma once\n// What is left?\nsay("What is left.")\n', []),
    ],
)
def test_a_question_word_as_a_subject_is_found(text: str, found: list[str]) -> None:
    assert [sentence for sentence in prose(text) if NOUN.match(sentence)] == found
