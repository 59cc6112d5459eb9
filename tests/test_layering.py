"""The folders import downwards only: Python imports, cimports and C++ includes alike."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

# What each folder may import of ours. `actors` installs as `callboard` itself.
ALLOWED = {
    "core": {"core"},
    "mailbox": {"core", "mailbox"},
    "scheduling": {"core", "mailbox", "scheduling"},
    "actors": {"core", "mailbox", "scheduling", "actors"},
}
LOWER = set(ALLOWED) - {"actors"}

CYTHON_FROM = re.compile(
    r"^\s*from\s+([\w.]+)\s+c?import\s+(?:\(([^)]*)\)|([^#\n]*))", re.MULTILINE
)
CYTHON_IMPORT = re.compile(r"^\s*c?import\s+([^#\n]+)", re.MULTILINE)
CYTHON_EXTERN = re.compile(r"""^\s*cdef\s+extern\s+from\s+["']<?([^"'>]+)>?["']""", re.MULTILINE)
CYTHON_TEXT = re.compile(r"""^\s*include\s+["']([^"']+)["']""", re.MULTILINE)
INCLUDE = re.compile(r"""^\s*#\s*include\s*[<"]([^>"]+)[>"]""", re.MULTILINE)


def names_imported(path: Path, text: str) -> Iterator[str]:
    """Yield each module that a Python or Cython source imports, as a dotted name."""
    if path.suffix in {".py", ".pyi"}:
        for node in ast.walk(ast.parse(text)):
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


def files_included(path: Path, text: str) -> Iterator[str]:
    """Yield each file that a Cython or C++ source includes, as it is written there."""
    yield from INCLUDE.findall(text)
    if path.suffix != ".hpp":
        yield from CYTHON_EXTERN.findall(text)
        yield from CYTHON_TEXT.findall(text)


def folder_of_module(name: str) -> str | None:
    """Say which folder of ours a dotted name lies in, or None for somebody else's."""
    first, *rest = name.split(".")
    if first != "callboard":
        return None
    return rest[0] if rest and rest[0] in LOWER else "actors"


def violations(path: Path, text: str) -> list[str]:
    """List what the source at `path`, relative to the root, imports though its folder may not."""
    allowed = ALLOWED[path.parts[0]]
    found = []
    if path.suffix != ".hpp":
        for name in names_imported(path, text):
            folder = folder_of_module(name)
            if name.startswith("."):
                found.append(f"{path}: {name} is relative: write it from callboard down")
            elif name.split(".")[0] in ALLOWED:
                found.append(f"{path}: {name} lacks the package's name, callboard")
            elif folder is not None and folder not in allowed:
                found.append(f"{path}: {name} is in {folder}")
            elif name.startswith("libcpp.atomic"):
                found.append(f"{path}: {name} goes round core/atomics.hpp")
    if path.suffix not in {".py", ".pyi"}:
        for name in files_included(path, text):
            folder = folder_of_module(name.replace("/", "."))
            if name == "atomic" and path != Path("core/atomics.hpp"):
                found.append(f"{path}: <atomic> goes round core/atomics.hpp")
            elif ".." in Path(name).parts or name.split("/")[0] in ALLOWED:
                found.append(f"{path}: {name} does not begin with callboard/")
            elif folder is not None and folder not in allowed:
                found.append(f"{path}: {name} is in {folder}")
    return found


def sources(root: Path) -> list[Path]:
    suffixes = {".py", ".pyi", ".pyx", ".pxd", ".pxi", ".hpp"}
    files = (path for folder in ALLOWED for path in (root / folder).rglob("*"))
    return sorted(path.relative_to(root) for path in files if path.suffix in suffixes)


def test_every_folder_imports_only_what_lies_below_it(root: Path) -> None:
    checked = sources(root)
    assert {path.parts[0] for path in checked} == set(ALLOWED)
    assert [line for path in checked for line in violations(path, (root / path).read_text())] == []


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("core/a.py", "from callboard.mailbox import b"),
        ("core/a.py", "from callboard import mailbox"),
        ("core/a.py", "def f():\n    import callboard.scheduling.worker"),
        ("core/a.pyi", "from callboard import Actor"),
        ("mailbox/a.py", "import mailbox"),
        ("mailbox/a.py", "from . import b"),
        ("mailbox/a.py", "from ..core import b"),
        ("mailbox/a.pyx", "from callboard.scheduling.worker cimport Worker"),
        ("mailbox/a.pxd", "from callboard cimport (\n    core,\n    native,\n)"),
        ("mailbox/a.pyx", "cimport callboard.core.clock, callboard.native"),
        ("mailbox/a.pyx", "from libcpp.atomic cimport atomic"),
        ("scheduling/a.pxd", 'cdef extern from "callboard/native.hpp" nogil:\n    pass'),
        ("scheduling/a.pyx", 'cdef extern from *:\n  """\n  #include "callboard/x.hpp"\n  """'),
        ("core/a.hpp", '#include "callboard/mailbox/mpsc.hpp"'),
        ("core/a.hpp", '#include "../mailbox/mpsc.hpp"'),
        ("core/a.hpp", "#include <core/node.hpp>"),
        ("core/a.hpp", "#  include <atomic>"),
        ("actors/a.pyx", 'cdef extern from "<atomic>":\n    pass'),
    ],
)
def test_a_forbidden_import_is_found(path: str, text: str) -> None:
    assert len(violations(Path(path), text)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("core/atomics.hpp", "#include <atomic>"),
        ("core/a.py", "import collections.core\nfrom callboard.core.clock import monotonic_ns"),
        ("mailbox/a.pyx", "from callboard.core.node cimport Node, Pool  # as in callboard.native"),
        ("scheduling/a.hpp", '#include "callboard/mailbox/mpsc.hpp"\n#include <mutex>'),
        ("scheduling/a.hpp", '#include "worker.hpp"'),
        ("actors/a.py", "from callboard.scheduling import worker\nfrom callboard import Actor"),
    ],
)
def test_an_import_that_points_downwards_is_allowed(path: str, text: str) -> None:
    assert violations(Path(path), text) == []
