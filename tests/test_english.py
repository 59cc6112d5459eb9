"""The pages are in plain English: the rules of CONTRIBUTING that a program can check."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "examples" / "README.md",
    *sorted(ROOT.joinpath("docs").rglob("*.md")),
]
"""The pages that users and contributors read."""
USERS_PAGES = [
    page
    for page in PAGES
    if page.parent.name in ("docs", "howto") and page.name not in ("index.md", "platforms.md")
]
"""The pages of how to use callboard. The others list pages, and interpreters."""

MOST_WORDS = 45
"""In one sentence."""
MOST_WORDS_BEFORE_A_PROGRAM = 100
"""On a page for users: its purpose, and what the program needs."""
LONG_SENTENCE = 25
LONG_SHARE = 0.1
"""The share of a page's sentences that may be longer than that."""
WORDS_OF_ALL_PAGES = 74_000
"""README, CONTRIBUTING and all of `docs`, without blocks of code and figures."""

FENCE = re.compile(r"^(`{3,}).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
CODE = re.compile(r"(`+).+?\1", re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
LIST_ITEM = re.compile(r"^(?:[-*]|\d+\.)\s+")
ENTRY = re.compile(r"^\*\*[^*]+\*\*: ")
"""A term and what it has: an entry of a list that is a table in all but form."""
ABBREVIATION = re.compile(r"\b(et al|e\.g|i\.e|vs|[A-Z])\.(?=\s)")
END_OF_SENTENCE = re.compile(r"(?<=[.!?])[)*\"]*\s+(?=[^a-z\s]|callboard)")
FOREIGN = re.compile(
    r"\b(?:anew|in vain|of theirs|(?:goes|go) on|hand(?:s|ed)? (?:on|out|over)|heeds?"
    r"|mend(?:s|ed)?|puts? out|what is no|wants an?)\b",
    re.IGNORECASE,
)
"""Phrases that a native speaker would edit out."""
NOUN = re.compile(r"^[(*\"]*(?:Who|What|Of)\b(?!.*\?[)*\"]*$)", re.DOTALL)


def paragraphs(text: str) -> Iterator[str]:
    """Yield the running text of a page: no code, no tables, no headings; a list's items apart."""
    text = COMMENT.sub("", FENCE.sub("\n\n", text))
    lines: list[str] = []
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        ends = not bare or bare.startswith(("#", "|"))
        if (ends or LIST_ITEM.match(bare)) and lines:
            yield " ".join(lines)
            lines = []
        if not ends and not line.startswith("    "):
            lines.append(LIST_ITEM.sub("", bare))


def sentences(text: str) -> Iterator[str]:
    """Yield a page's sentences; a piece of code and a link's address are one word each."""
    for paragraph in paragraphs(text):
        plain = LINK.sub(r"\1", CODE.sub("Code", paragraph))
        plain = ABBREVIATION.sub(r"\1", plain)
        yield from END_OF_SENTENCE.split(plain)


def cells(text: str) -> Iterator[str]:
    """Yield what stands in the cells of a page's tables."""
    for line in COMMENT.sub("", FENCE.sub("", text)).splitlines():
        if line.startswith("|"):
            yield from (cell.strip() for cell in line.strip("|").split("|"))


def words(sentence: str) -> int:
    """Return how many words a sentence has; numbers and dashes by themselves are none."""
    return sum(1 for word in sentence.split() if re.search(r"[A-Za-z]", word))


each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


@each_page
def test_no_sentence_begins_with_a_question_word_as_its_subject(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = [each for each in [*sentences(text), *cells(text)] if NOUN.match(each)]
    assert not found


@each_page
def test_no_phrase_reads_as_a_translation(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    found = [each for each in [*sentences(text), *cells(text)] if FOREIGN.search(each)]
    quoted = [each for each in found if page.name == "CONTRIBUTING.md" and 'not "what is' in each]
    assert found == quoted


@each_page
def test_sentences_are_short(page: Path) -> None:
    found = [s for s in sentences(page.read_text(encoding="utf-8")) if not ENTRY.match(s)]
    lengths = {each: words(each) for each in found}
    assert not [each for each, length in lengths.items() if length > MOST_WORDS]
    long = [each for each, length in lengths.items() if length > LONG_SENTENCE]
    share = len(long) / len(lengths)
    assert share <= LONG_SHARE, f"{share:.0%} of the sentences are long: {long}"


@pytest.mark.parametrize("page", USERS_PAGES, ids=lambda page: page.name)
def test_a_users_page_begins_with_its_purpose_and_a_program(page: Path) -> None:
    opening = FENCE.split(page.read_text(encoding="utf-8"), maxsplit=1)[0]
    _, _, purpose = opening.partition("\n\n")
    assert purpose[0].isalpha() or purpose[0] == "`"
    assert words(opening) <= MOST_WORDS_BEFORE_A_PROGRAM


def test_the_pages_together_stay_short() -> None:
    everything = {*PAGES, *ROOT.joinpath("docs").rglob("*.md")}
    texts = {page: FENCE.sub("", page.read_text(encoding="utf-8")) for page in everything}
    counts = {page: words(text) for page, text in texts.items()}
    longest = sorted(counts.items(), key=lambda item: -item[1])[:5]
    assert sum(counts.values()) <= WORDS_OF_ALL_PAGES, f"the longest: {longest}"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two\nlines? `Code. More` ends.", ["One.", "Two lines?", "Code ends."]),
        ("# Head\n- first\n- second\n  goes on\n\nLast.", ["first", "second goes on", "Last."]),
        ("```python\nNo. Text.\n```\n<!-- No. -->\n| a | b |\nYes.", ["Yes."]),
        ("By Das et al. It [is](x.md#y).", ["By Das et al It is."]),
    ],
)
def test_the_sentences_of_a_page_are_found(text: str, found: list[str]) -> None:
    assert list(sentences(text)) == found


@pytest.mark.parametrize("wrong", ["What is left waits.", "Who asks waits.", "**Of** all, one."])
def test_a_question_word_as_a_subject_is_noticed(wrong: str) -> None:
    assert NOUN.match(wrong)
    assert not NOUN.match("What is left?")
    assert not NOUN.match("Whole rows.")
