"""An edit of a header rebuilds few extension modules."""

import re
from pathlib import Path

import pytest

from tests.sources import compiled_from, sources, write

CIMPORT = re.compile(r"^from (callboard[\w.]*) cimport ([^(\n]+|\([^)]*)", re.MULTILINE)

# How many modules may be recompiled after an edit.
MOST = {
    "scheduling/inline_polling.hpp": 1,
    "scheduling/stealing.hpp": 3,
    "scheduling/stealing.pxd": 2,
    "scheduling/dispatch_length.hpp": 1,
    "scheduling/dispatching.hpp": 8,
    "scheduling/worker.hpp": 15,
    "scheduling/cell.hpp": 27,
}


@pytest.mark.parametrize(("edited", "most"), MOST.items())
def test_an_edit_rebuilds_few_modules(edited: str, most: int, root: Path) -> None:
    rebuilt = [module for module, files in compiled_from(root).items() if Path(edited) in files]
    assert 0 < len(rebuilt) <= most, sorted(map(str, rebuilt))


def test_no_source_cimports_a_module_from_its_package(root: Path) -> None:
    """Cython does not list such a module among the dependencies of a translation."""
    found = []
    for path in sources(root):
        for package, names in CIMPORT.findall((root / path).read_text()):
            folder = package.removeprefix("callboard").strip(".").replace(".", "/")
            for name in re.findall(r"\w+", names):
                places = (root / "actors" / folder / name, root / folder / name)
                if any(place.with_suffix(".pxd").exists() for place in places):
                    found.append(f"{path}: {name}")
    assert found == []


def test_a_modules_sources_are_found_through_headers(tmp_path: Path) -> None:
    texts = {
        "core/a.hpp": "",
        "core/b.hpp": '#include "callboard/core/a.hpp"',
        "core/b.pxd": 'cdef extern from "callboard/core/b.hpp":\n    int b()',
        "core/c.pyx": "from callboard.core.b cimport (\n    b,\n)\nfrom callboard.core import d",
        "core/d.pyx": "from callboard.core cimport e",
        "core/e.pxd": 'cdef extern from *:\n    """\n    #include "callboard/core/a.hpp"\n    """',
        "core/f.pyx": "from callboard.core.b import b",
        "core/f.pxd": "cdef int f()",
    }
    write(tmp_path, texts)
    found = compiled_from(tmp_path)
    assert {str(module): {path.name for path in files} for module, files in found.items()} == {
        "core/c": {"c.pyx", "b.pxd", "b.hpp", "a.hpp"},
        "core/d": {"d.pyx", "e.pxd", "a.hpp"},
        "core/f": {"f.pyx", "f.pxd"},
    }
