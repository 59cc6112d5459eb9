"""The reasons for waiting: every kind of future has one, and the pages name them all."""

import re
from pathlib import Path

import pytest

from callboard._inside.answers.wait_cause import WaitCause, WaitReason, WaitTarget
from tests.sources import sources

CLASS = re.compile(r"^(?:cdef )?class (\w+)\((\w+)[^\n]*:\n((?:(?:[ \t][^\n]*)?\n)*)", re.MULTILINE)
FIRST_CELL = re.compile(r"^\| (`[^|]*) \|", re.MULTILINE)


def quoted_first(tables: str) -> list[str]:
    """Return what the first cells of tables have in backticks."""
    return [text for cell in FIRST_CELL.findall(tables) for text in re.findall("`(.+?)`", cell)]


def classes(texts: list[str]) -> dict[str, tuple[str, bool]]:
    """Map each class to its first base, and to whether it says itself what is waited for."""
    return {
        name: (base, "def _wait_cause(self)" in body)
        for text in texts
        for name, base, body in CLASS.findall(text)
    }


def silent_futures(texts: list[str]) -> set[str]:
    """Return the kinds of futures that do not say what those who wait for them wait for."""
    found = classes(texts)

    def chain(name: str) -> list[str]:
        return [name, *chain(found[name][0])] if name in found and name != "Future" else [name]

    kinds = [chain(name) for name in found if name != "Future"]
    futures = [names for names in kinds if names[-1] == "Future"]
    assert futures
    return {names[0] for names in futures if not any(found[name][1] for name in names[:-1])}


def test_every_kind_of_future_names_its_wait_target(root: Path) -> None:
    paths = [path for path in sources(root) if path.suffix in {".py", ".pyx"}]
    assert silent_futures([(root / path).read_text() for path in paths]) == set()


def test_a_future_without_a_cause_is_found() -> None:
    cause = "    @property\n    def _wait_cause(self):\n        return None\n"
    texts = [
        f"class A(Future[int]):\n{cause}\nclass B(A):\n    pass\n",
        "cdef class C(Future):\n    pass\n\nclass D(C):\n    pass\nclass E(Other):\n    pass\n",
    ]
    assert silent_futures(texts) == {"C", "D"}


@pytest.mark.parametrize("awaited", WaitTarget)
def test_everything_that_is_awaited_has_a_reason_and_words(awaited: WaitTarget) -> None:
    cause = WaitCause(awaited, "/shop")
    assert cause.reason in WaitReason
    assert "{" not in str(cause)


def test_a_reason_prints_as_a_plain_string() -> None:
    assert f"{WaitReason.NO_INPUT} {WaitReason.NO_INPUT!r}" == "no input 'no input'"


def test_the_page_on_standstills_has_all_reasons_and_no_others(root: Path) -> None:
    page = (root / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    reasons = page[page.index("### The reasons") : page.index("### From outside")]
    in_tables = {
        name for cell in FIRST_CELL.findall(reasons) for name in re.findall("`(.+?)`", cell)
    }
    assert in_tables - set(WaitReason) == set()
    assert set(WaitReason) - set(re.findall("`(.+?)`", reasons)) == set()


def test_the_page_on_standstills_quotes_the_words(root: Path) -> None:
    page = (root / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    table = page[page.index("| reason | the actor |") : page.index("| reason | the operator |")]
    texts = [str(WaitCause(awaited, "...")) for awaited in WaitTarget]
    known = [re.compile(re.escape(text).replace(r"\.\.\.", r"[\w/-]+")) for text in texts]
    cells = [row.split("|")[3] for row in table.splitlines()[2:] if row]
    quoted = [text for cell in cells for text in re.findall("`(.+?)`", cell)]
    assert quoted
    assert [text for text in quoted if not any(one.fullmatch(text) for one in known)] == []
