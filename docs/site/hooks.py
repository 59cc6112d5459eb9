"""Makes pages of the site from the repository's files, which are written for GitHub.

- Files outside of `docs`, such as the README, become pages; the README is the first one.
- The reference has a page for each public module, with the names in its `__all__`.
- A link to a file that is not a page leads to the file's source.
- A pipe in the code of a table needs no backslash here.
- The file name of a fence becomes its title. Mermaid diagrams in outputs are drawn.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from posixpath import dirname, join, normpath, relpath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[2]

OUTSIDE = {
    "README.md": "index.md",
    "docs/index.md": "pages.md",
    "examples/README.md": "examples.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
"""The pages whose place on the site differs from that in the repository."""

MODULES = (
    "callboard",
    "callboard.asks",
    "callboard.channels",
    "callboard.dashboard",
    "callboard.frequency",
    "callboard.native",
    "callboard.nets",
    "callboard.observing",
    "callboard.observing.opentelemetry",
    "callboard.observing.prometheus",
    "callboard.policies",
    "callboard.remote",
    "callboard.remote.errors",
    "callboard.routers",
    "callboard.spark",
    "callboard.spark.errors",
    "callboard.streams",
    "callboard.streams.native",
    "callboard.testing",
)

LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)\s#]+)(?=(?:#[^)\s]*)?\))")
CODE = re.compile(r"(`+).+?\1")
FENCE = re.compile(r"^(`{3,})(.*)$")
DRAWN = re.compile(r"^(```)output(?=\nflowchart )", re.MULTILINE)
LANGUAGES = {"meson": "text", "output": "text"}
"""The languages of fences, and those by which they are highlighted."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages whose files are elsewhere, and the reference."""
    index = files.get_file_from_path("index.md")
    if index is not None:
        files.remove(index)
    for source, page in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=text))
    for module in MODULES:
        place = f"reference/{module}.md"
        files.append(File.generated(config, place, content=reference(module)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adapt a page's links and fences."""
    place = page.file.src_uri
    origins = {page: source for source, page in OUTSIDE.items()}
    origin = origins.get(place, f"docs/{place}")
    source = str(config.repo_url)
    lines: list[str] = []
    fence = ""
    for line in DRAWN.sub(r"\1mermaid", markdown).splitlines():
        found = FENCE.match(line)
        if found and not fence:
            fence = found[1]
            lines.append(fence + information(found[2]))
        elif fence:
            lines.append(line)
            if line.rstrip() == fence:
                fence = ""
        else:
            if line.startswith("|"):
                line = CODE.sub(lambda code: code[0].replace(r"\|", "|"), line)
            lines.append(LINK.sub(lambda link: target(link[1], origin, place, source), line))
    return "\n".join(lines)


def information(said: str) -> str:
    """Return the text after a fence's backticks: the language, and a title."""
    language, _, name = said.strip().partition(" ")
    title = name or ("output" if language == "output" else "")
    language = LANGUAGES.get(language, language)
    return f'{language} title="{title}"' if title else language


def target(link: str, origin: str, place: str, source: str) -> str:
    """Return the target on the site of a link in the file `origin`, which is the page `place`."""
    named = normpath(join(dirname(origin), link))
    page = OUTSIDE.get(named, named.removeprefix("docs/") if named.startswith("docs/") else None)
    if page is not None and not (ROOT / named).is_dir():
        return relpath(page, dirname(place) or ".")
    if not (ROOT / named).exists():
        return link  # MkDocs reports it
    kind = "tree" if (ROOT / named).is_dir() else "blob"
    return f"{source}/{kind}/main/{named}"


def reference(module: str) -> str:
    """Return the reference's page of a module: the first words of its docstring, and its names."""
    tree = ast.parse(source_of(module).read_text(encoding="utf-8"))
    words = (ast.get_docstring(tree) or "").partition("\n\n")[0]
    parts = [f"# {module}", words]
    parts += [f"::: {module}.{name}" for name in exported(tree) if not name.startswith("__")]
    return "\n\n".join(parts) + "\n"


def source_of(module: str) -> Path:
    """Return the file with a module's names: its stub, if it is compiled."""
    stem = ROOT.joinpath("actors", *module.split(".")[1:])
    found = [stem / "__init__.py", stem.with_suffix(".pyi"), stem.with_suffix(".py")]
    return next(path for path in found if path.exists())


def exported(tree: ast.Module) -> list[str]:
    """Return the names in `__all__`, or those that the module defines."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and "__all__" in map(ast.unparse, node.targets):
            return [str(name) for name in ast.literal_eval(node.value)]
    defined = (node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef))
    return [node.name for node in defined if not node.name.startswith("_")]
