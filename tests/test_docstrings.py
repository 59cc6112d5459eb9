"""Docstrings have one dialect: plain sentences, with code in single backticks."""

import re
from pathlib import Path

import pytest

from tests.sources import sources

DOCSTRING = re.compile(r'^\s*"""(.*?)"""', re.MULTILINE | re.DOTALL)
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
