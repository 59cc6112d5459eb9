"""The glossary is short, and words that were removed from it are not used."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import sources
from tests.test_names import types_in

ROOT = Path(__file__).parents[1]
GLOSSARY = ROOT / "docs" / "design" / "glossary.md"
MOST_WORDS = 25
"""A coined word is a price that each reader pays. A new one takes the place of another."""
ROW = re.compile(r"^\| ([a-z][^|]*) \| ([^|]*) \| ([^|]*) \|$", re.MULTILINE)
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")

# Coined words that gave way to the field's terms. They may be in no identifier and in no sentence.
GONE = re.compile(
    r"\b(?:attend(?:s|ed|ing)?|bells?|bur(?:y|ies|ied)|capabilit(?:y|ies)|carriers?|conductors?"
    r"|drips?|errands?|finders?|foretold|forsak(?:e|es|en|ing)|glances?|heed(?:s|ed|ing)?|hire[sd]?"
    r"|linking gaps?|lonely|rosters?|sights?|stints?|tickets?|unborn|unfinish(?:es)?"
    r"|unlimit|unmade|untaken?)\b"
)
# Words of plain English that once had a sense of their own: no type and no module has them in its
# name, or is called so.
NOT_IN_NAMES = re.compile(
    r"\b(?:apart|claims?|crew|deck|(?<!dead )letter|lots?|owe[ds]|pace|seats?|sites?|talk"
    r"|tally)\b|^(?:flights?|shares?|slices?|steps?|turns?|units?)$"
)


def rows(page: str) -> list[tuple[str, str, str]]:
    """Return the words of a glossary, their meanings, and the field's terms for them."""
    found = [(word, meaning, term.strip()) for word, meaning, term in ROW.findall(page)]
    return [row for row in found if row[0] != "word"]


def plain(text: str) -> str:
    """Return a text in lower case, with each identifier split into its words."""
    return CAMEL.sub(" ", text).replace("_", " ").replace("-", " ").lower()


def is_used(word: str, texts: str) -> bool:
    return re.search(rf"\b{re.escape(plain(word))}(?:s|es)?\b", texts) is not None


def coined(path: Path, text: str) -> Iterator[str]:
    """Yield the coined words of a source or a page, and the coined names of its types."""
    yield from GONE.findall(plain(text))
    if path.suffix != ".md":
        for name in {path.stem, *types_in(path, text)}:
            if NOT_IN_NAMES.search(plain(name).strip()):
                yield name


PAGE = GLOSSARY.read_text(encoding="utf-8")
ROWS = rows(PAGE)


@pytest.fixture(scope="module")
def texts() -> dict[Path, str]:
    """Return the sources and the pages, except for the glossary."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.joinpath("docs").rglob("*.md")]
    paths = [*sources(ROOT), *(page.relative_to(ROOT) for page in pages if page != GLOSSARY)]
    return {path: (ROOT / path).read_text(encoding="utf-8") for path in paths}


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


def test_each_word_is_used_in_the_code_or_on_a_page(texts: dict[Path, str]) -> None:
    everything = plain("\n".join(texts.values()))
    assert not [word for word, _, _ in ROWS if not is_used(word, everything)]


def test_no_coined_word_comes_back(texts: dict[Path, str]) -> None:
    found = {str(path): sorted(set(coined(path, text))) for path, text in texts.items()}
    assert {path: words for path, words in found.items() if words} == {}


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("actors/a.py", "class JoinFinder: ...", ["finder"]),
        ("docs/a.md", "The worker heeds a bell.", ["heeds", "bell"]),
        ("core/pace.hpp", "", ["pace"]),
        ("core/a.hpp", "struct Share { int step; };", ["Share"]),
        ("actors/dead_letters.py", "class DeadLetter:\n    time_slice = 1  # far apart", []),
    ],
)
def test_a_coined_word_is_found(path: str, text: str, words: list[str]) -> None:
    assert list(coined(Path(path), text)) == words


def test_a_word_of_an_identifier_is_found() -> None:
    assert is_used("free list", plain("class FreeList: two free_lists"))
    assert not is_used("pool", plain("a spool"))
