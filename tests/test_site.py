"""The site has every page and every public name, and builds without a warning."""

import importlib
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]
NAMED = re.compile(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", re.MULTILINE)


@pytest.fixture(scope="module")
def hooks() -> ModuleType:
    pytest.importorskip("mkdocs")
    spec = importlib.util.spec_from_file_location("hooks", ROOT / "docs/site/hooks.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def navigation() -> list[str]:
    return NAMED.findall((ROOT / "mkdocs.yml").read_text().partition("\nnav:\n")[2])


def public_modules() -> Iterator[str]:
    """Yield callboard, and its packages with an `__all__`."""
    yield "callboard"
    for path in ROOT.glob("actors/*/__init__.py"):
        if not path.parent.name.startswith("_") and "\n__all__ = [" in path.read_text():
            yield f"callboard.{path.parent.name}"


def test_every_page_has_a_place_in_the_navigation() -> None:
    pages = {str(page.relative_to(ROOT / "docs")) for page in ROOT.glob("docs/**/*.md")}
    assert pages - set(navigation()) == {"index.md"} - set(navigation())
    assert len(navigation()) == len(set(navigation()))


def test_every_public_package_has_a_page_in_the_reference() -> None:
    pages = set(navigation())
    # A pool is made by `system.pool()`.
    modules = set(public_modules()) - {"callboard.pools"}
    assert {f"reference/{module}.md" for module in modules} <= pages


def test_the_site_is_where_the_project_says() -> None:
    pyproject = (ROOT / "pyproject.toml").read_text()
    mkdocs = (ROOT / "mkdocs.yml").read_text()
    for name, key in (("Documentation", "site_url"), ("Source", "repo_url")):
        addresses = [
            re.search(rf'^{name} = "(.+)"$', pyproject, re.MULTILINE),
            re.search(rf"^{key}: (.+)$", mkdocs, re.MULTILINE),
        ]
        first, second = (found and found[1] for found in addresses)
        assert first == second


@pytest.mark.parametrize(
    ("link", "origin", "place", "leads_to"),
    [
        ("docs/streams.md", "README.md", "index.md", "streams.md"),
        ("../README.md", "docs/serve.md", "serve.md", "index.md"),
        ("index.md", "docs/serve.md", "serve.md", "pages.md"),
        ("../streams.md", "docs/design/nets.md", "design/nets.md", "../streams.md"),
        ("../examples/hello.py", "docs/serve.md", "serve.md", "S/blob/main/examples/hello.py"),
        ("examples/", "README.md", "index.md", "S/tree/main/examples"),
        ("nowhere.md", "README.md", "index.md", "nowhere.md"),
    ],
)
def test_a_link_leads_to_the_same_file_on_the_site(
    hooks: ModuleType, link: str, origin: str, place: str, leads_to: str
) -> None:
    assert hooks.target(link, origin, place, "S") == leads_to


@pytest.mark.parametrize(
    ("said", "information"),
    [
        ("python", "python"),
        ("python app.py", 'python title="app.py"'),
        ("output", 'text title="output"'),
        ("", ""),
    ],
)
def test_a_fences_file_name_is_its_title(hooks: ModuleType, said: str, information: str) -> None:
    assert hooks.information(said) == information


def test_the_site_builds_without_a_warning(tmp_path: Path, wheel: Distribution) -> None:
    for module in ("material", "mkdocstrings_handlers.python"):
        pytest.importorskip(module)
    built = subprocess.run(
        [Path(sys.executable).with_name("mkdocs"), "build", "--site-dir", tmp_path],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert built.returncode == 0, built.stderr
    page = (tmp_path / "reference/callboard/index.html").read_text()
    text = re.sub(r"<[^>]+>", "", page)
    assert "A handle to an actor. Thread-safe" in text
    assert page.index('id="callboard.ActorRef.tell_many"') < page.index(
        'id="callboard.ActorRef.worker"'
    ), "what is inherited comes last"
    assert 'class="mermaid"' in (tmp_path / "concepts/index.html").read_text()
