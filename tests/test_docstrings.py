"""Docstrings have one dialect: plain sentences, with code in single backticks.

Their sentences, and those of comments, begin with a subject, as those of the pages do.
"""

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
# The markup of reStructuredText and of Google's style.
FOREIGN = re.compile(r"``|^\s*:\w+[^:`\n]*: |^\s*(?:Args|Returns|Raises):$", re.MULTILINE)


def foreign(text: str) -> list[str]:
    """List what of a source's docstrings is written otherwise."""
    return [found for docstring in DOCSTRING.findall(text) for found in FOREIGN.findall(docstring)]


def test_docstrings_have_no_markup_of_another_dialect(root: Path) -> None:
    files = [*sources(root), *(path.relative_to(root) for path in root.glob("examples/**/*.py"))]
    found = {str(path): foreign((root / path).read_text()) for path in files}
    assert {path: markup for path, markup in found.items() if markup} == {}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Run ``build``."""', ["``", "``"]),
        ('"""Run.\n\n    :param build: what is run\n    """', ["    :param build: "]),
        ('    """Run.\n\n    Raises:\n        ValueError\n    """', ["    Raises:"]),
        ('"""Run `build(name: str)`.\n\n    Raises ConfigError: it says why.\n    """', []),
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
