"""Pages link to files and headings that exist, and the index links to every page."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [
    *ROOT.glob("*.md"),
    *ROOT.joinpath("docs").rglob("*.md"),
    *ROOT.joinpath("examples").rglob("*.md"),
]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(`{3,}).*?^\1[ ]*$", re.MULTILINE | re.DOTALL)
SOURCE = re.compile(r"`((?:[\w.]+/)*\w[\w.]*\.(?:hpp|cpp|pxd|pyx|pyi))`|`((?:\w+/)+\w+\.py)`")
"""A source's name in prose, of which the first folders may be missing."""
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def targets(page: Path) -> set[Path]:
    """Return the files that a page's relative links name."""
    links = LINK.findall(page.read_text(encoding="utf-8"))
    return {
        (page.parent / link.partition("#")[0]).resolve()
        for link in links
        if not link.startswith(("http:", "https:", "mailto:", "#"))
    }


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = HEADING.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading).lower().replace(" ", "-") for heading in headings}


def missing_anchors(page: Path) -> list[str]:
    """Return a page's links to missing headings."""
    missing = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        path, hash_sign, anchor = link.partition("#")
        if hash_sign and "://" not in link:
            target = (page.parent / path).resolve() if path else page
            missing += [] if anchor in anchors(target) else [link]
    return missing


@each_page
def test_a_page_links_to_files_that_exist(page: Path) -> None:
    missing = [str(target) for target in targets(page) if not target.exists()]
    assert not missing


@each_page
def test_a_page_links_to_headings_that_exist(page: Path) -> None:
    assert not missing_anchors(page)


def test_the_sources_that_pages_name_exist() -> None:
    folders = ("core", "mailbox", "scheduling", "actors", "tests", "examples", "docs")
    files = [
        f"/{path.relative_to(ROOT)}" for each in folders for path in (ROOT / each).rglob("*.*")
    ]
    missing = {
        f"{page.relative_to(ROOT)}: {name}"
        for page in [ROOT / "CONTRIBUTING.md", *ROOT.joinpath("docs").rglob("*.md")]
        for names in SOURCE.findall(FENCE.sub("", page.read_text(encoding="utf-8")))
        for name in names
        if name and not any(file.endswith(f"/{name.removeprefix('callboard/')}") for file in files)
    }
    # The change that CONTRIBUTING describes has not been made.
    assert missing == {"CONTRIBUTING.md: tests/scheduling/test_worker_clock.py"}


def test_the_index_leads_to_every_page_of_the_documentation() -> None:
    index = ROOT / "docs" / "index.md"
    pages = set(ROOT.joinpath("docs").rglob("*.md")) - {index}
    assert pages <= targets(index), f"not in docs/index.md: {pages - targets(index)}"


def test_a_link_to_a_missing_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A `b`: c, d\n[x](#a-b-c-d) [y](page.md#a-b-c-d) [z](#b)\n```\n# b\n```\n")
    assert missing_anchors(page) == ["#b"]
