"""The glossary: each word once, in order, with a term of the field beside it, and used."""

import re
from pathlib import Path

import pytest

from tests.sources import FLOORS

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "design" / "glossary.md"
MOST_WORDS = 60
"""A coined word is a price that each reader pays. A new one takes the place of another."""
CODE = (".hpp", ".pxd", ".pyx", ".py")
ROW = re.compile(r"^\| ([a-z][^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def rows(page: str) -> list[tuple[str, str, str]]:
    """Return the words of a glossary, what each means, and what the field calls it."""
    found = [(word, meaning, term.strip()) for word, meaning, term in ROW.findall(page)]
    return [row for row in found if row[0] != "word"]


def plain(text: str) -> str:
    """Return a text in lower case, with identifiers as the words that they are made of."""
    return CAMEL.sub(" ", text).replace("_", " ").replace("-", " ").lower()


def is_used(word: str, texts: str) -> bool:
    return re.search(rf"\b{re.escape(plain(word))}(?:s|es)?\b", texts) is not None


PAGE = GLOSSARY.read_text(encoding="utf-8")
ROWS = rows(PAGE)


@pytest.fixture(scope="module")
def texts() -> str:
    """Return the code and the pages, but for the glossary."""
    sources = [
        path
        for floor in FLOORS
        for path in ROOT.joinpath(floor).rglob("*")
        if path.suffix in CODE and path.is_file()
    ]
    pages = [page for page in ROOT.joinpath("docs").rglob("*.md") if page != GLOSSARY]
    return plain("\n".join(path.read_text(encoding="utf-8") for path in [*sources, *pages]))


def test_every_line_of_the_table_is_a_row() -> None:
    lines = [line for line in PAGE.splitlines() if line.startswith("|")]
    assert len(lines) == len(ROWS) + 2


def test_the_words_are_few_and_in_order_and_each_has_one_row() -> None:
    words = [word for word, _, _ in ROWS]
    assert words == sorted(set(words))
    assert len(words) <= MOST_WORDS


def test_each_word_has_one_sentence_and_a_term_of_the_field() -> None:
    wrong = [
        word
        for word, meaning, term in ROWS
        if not term or meaning.count(". ") or meaning[-1] != "."
    ]
    assert not wrong


def test_each_word_is_used_in_the_code_or_on_a_page(texts: str) -> None:
    assert not [word for word, _, _ in ROWS if not is_used(word, texts)]


def test_a_word_of_an_identifier_is_found() -> None:
    assert is_used("free list", plain("class FreeList:"))
    assert is_used("free list", plain("two free_lists"))
    assert not is_used("pool", plain("a spool"))


def test_a_line_without_a_term_of_the_field_is_noticed() -> None:
    assert rows("| word | meaning | term |\n|---|---|---|\n| cell | An actor. |  |\n") == [
        ("cell", "An actor.", "")
    ]
