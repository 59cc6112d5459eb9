"""The graph of the sources' imports, cimports and includes, for the tests of their order."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

# From the ground up. `actors` installs as `callboard` itself.
LAYERS = ("core", "mailbox", "scheduling", "actors")

CYTHON_FROM = re.compile(
    r"^\s*from\s+([\w.]+)\s+c?import\s+(?:\(([^)]*)\)|([^#\n]*))", re.MULTILINE
)
CYTHON_IMPORT = re.compile(r"^\s*c?import\s+([^#\n]+)", re.MULTILINE)
CYTHON_CIMPORT = re.compile(
    r"^\s*(?:from\s+([\w.]+)\s+)?cimport\s+(?:\(([^)]*)\)|([^#\n]*))", re.MULTILINE
)
CYTHON_EXTERN = re.compile(r"""^\s*cdef\s+extern\s+from\s+["']<?([^"'>]+)>?["']""", re.MULTILINE)
CYTHON_TEXT = re.compile(r"""^\s*include\s+["']([^"']+)["']""", re.MULTILINE)
BY_STRING = re.compile(r"\b(?:import_module|__import__)\b")
OUR_STRING = re.compile(r"""["'](callboard(?:\.\w+)+)["']""")
INCLUDE = re.compile(r"""^\s*#\s*include\s*[<"]([^>"]+)[>"]""", re.MULTILINE)


def sources(root: Path) -> list[Path]:
    """List the sources, relative to the root."""
    suffixes = {".py", ".pyi", ".pyx", ".pxd", ".pxi", ".hpp"}
    files = (path for layer in LAYERS for path in (root / layer).rglob("*"))
    return sorted(path.relative_to(root) for path in files if path.suffix in suffixes)


def write(root: Path, texts: dict[str, str]) -> dict[Path, set[Path]]:
    """Write sources below a root, for a test of these functions, and return what they import."""
    for name, text in texts.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return imports(root)


def names_imported(path: Path, text: str, *, for_types: bool = True) -> Iterator[str]:
    """Yield each name that a Python or Cython source imports, with its module.

    Imports inside functions count, and so do strings with names of callboard's modules in a source
    that imports by string. Without `for_types`, imports under `if TYPE_CHECKING` are left out.
    """
    if BY_STRING.search(text):
        yield from OUR_STRING.findall(text)
    if path.suffix in {".py", ".pyi"}:
        for node in walk(ast.parse(text), for_types):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                base = "." * node.level + (node.module or "")
                yield from (f"{base.rstrip('.') or base}.{alias.name}" for alias in node.names)
    else:
        for base, in_brackets, on_line in CYTHON_FROM.findall(text):
            for name in (in_brackets or on_line).split(","):
                if name.strip():
                    yield f"{base}.{name.split()[0]}"
        for names in CYTHON_IMPORT.findall(text):
            yield from (name.split()[0] for name in names.split(","))


def walk(node: ast.AST, for_types: bool) -> Iterator[ast.AST]:
    """Yield a syntax tree's nodes."""
    yield node
    skipped = (
        node.body
        if isinstance(node, ast.If) and not for_types and "TYPE_CHECKING" in ast.dump(node.test)
        else []
    )
    for child in ast.iter_child_nodes(node):
        if child not in skipped:
            yield from walk(child, for_types)


def files_included(path: Path, text: str) -> Iterator[str]:
    """Yield each file that a Cython or C++ source includes, as it is written there."""
    yield from INCLUDE.findall(text)
    if path.suffix != ".hpp":
        yield from CYTHON_EXTERN.findall(text)
        yield from CYTHON_TEXT.findall(text)


def unit_of(path: Path) -> Path:
    """Return the unit of a source: a header, or a module without its suffix."""
    return path if path.suffix == ".hpp" else path.with_suffix("")


def place_of(name: str) -> Path | None:
    """Return the place of a name below the root, or None for another package's name."""
    first, *rest = name.split(".")
    if first != "callboard":
        return None
    return Path(*rest) if rest and rest[0] in LAYERS[:-1] else Path("actors", *rest)


def imports(root: Path, *, for_types: bool = False) -> dict[Path, set[Path]]:
    """Map each header and each module to those that it needs when it is compiled or run.

    Stubs need nothing, and imports for types alone count only with `for_types`.
    """
    files = [path for path in sources(root) if path.suffix != ".pyi"]
    units = {unit_of(path) for path in files}
    graph: dict[Path, set[Path]] = {unit: set() for unit in units}
    for path in files:
        text = (root / path).read_text()
        needed = graph[unit_of(path)]
        if path.suffix != ".hpp":
            for name in names_imported(path, text, for_types=for_types):
                place = place_of(name)
                if place is not None:
                    candidates = (
                        place,
                        place / "__init__",
                        place.parent,
                        place.parent / "__init__",
                    )
                    needed.update([unit for unit in candidates if unit in units][:1])
        if path.suffix != ".py":
            for name in files_included(path, text):
                place = place_of(name.removesuffix(".hpp").replace("/", "."))
                header = path.parent / name if place is None else place.with_suffix(".hpp")
                needed.update({header} & units)
    for unit, needed in graph.items():
        needed.discard(unit)
    return graph


def compiled_from(root: Path) -> dict[Path, set[Path]]:
    """Map each extension module to the files that it is compiled from, whose edits rebuild it."""
    files = {path for path in sources(root) if path.suffix in {".pyx", ".pxd", ".hpp"}}
    direct = {path: set(read_by(path, (root / path).read_text(), files)) for path in files}

    def all_behind(path: Path, found: set[Path]) -> set[Path]:
        if path not in found:
            found.add(path)
            for following in direct[path]:
                all_behind(following, found)
        return found

    modules = [path for path in files if path.suffix == ".pyx"]
    return {path.with_suffix(""): all_behind(path, set()) for path in modules}


def read_by(path: Path, text: str, files: set[Path]) -> Iterator[Path]:
    """Yield each file of callboard that the compilers read for a source."""
    if path.suffix == ".pyx":
        yield from {path.with_suffix(".pxd")} & files
    if path.suffix != ".hpp":
        for base, in_brackets, on_line in CYTHON_CIMPORT.findall(text):
            listed = [name for name in (in_brackets or on_line).split(",") if name.strip()]
            names = [name.split()[0] for name in listed]
            for name in [base, *(f"{base}.{name}" for name in names)] if base else names:
                place = place_of(name)
                yield from {place.with_suffix(".pxd")} & files if place is not None else ()
    for name in files_included(path, text):
        place = place_of(name.removesuffix(".hpp").replace("/", "."))
        header = path.parent / name if place is None else place.with_suffix(".hpp")
        yield from {header} & files


def circles(graph: dict[Path, set[Path]]) -> list[list[str]]:
    """List the strongly connected components of more than one node, by Tarjan's algorithm."""
    index: dict[Path, int] = {}
    low: dict[Path, int] = {}
    stack: list[Path] = []
    found: list[list[str]] = []

    def visit(node: Path) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for following in sorted(graph[node]):
            if following not in index:
                visit(following)
                low[node] = min(low[node], low[following])
            elif following in stack:
                low[node] = min(low[node], index[following])
        if low[node] == index[node]:
            at = stack.index(node)
            component = stack[at:]
            del stack[at:]
            if len(component) > 1:
                found.append(sorted(map(str, component)))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return sorted(found)
