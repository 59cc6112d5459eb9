"""The pages of the documentation lead to files that are there, and the index to every page."""

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


def targets(page: Path) -> set[Path]:
    """Return the files that a page's relative links name."""
    links = LINK.findall(page.read_text(encoding="utf-8"))
    return {
        (page.parent / link.partition("#")[0]).resolve()
        for link in links
        if not link.startswith(("http:", "https:", "mailto:", "#"))
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_links_to_what_is_there(page: Path) -> None:
    missing = [str(target) for target in targets(page) if not target.exists()]
    assert not missing


def test_the_index_leads_to_every_page_of_the_documentation() -> None:
    index = ROOT / "docs" / "index.md"
    pages = set(ROOT.joinpath("docs").rglob("*.md")) - {index}
    assert pages <= targets(index), f"not in docs/index.md: {pages - targets(index)}"
