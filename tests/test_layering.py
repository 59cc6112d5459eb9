"""Imports point one way between the four layers, between their folders, and between files.

Python imports, cimports and C++ includes all count.
"""

import ast
from pathlib import Path

import pytest

from tests.sources import (
    LAYERS,
    circles,
    files_included,
    imports,
    names_imported,
    place_of,
    sources,
    write,
)

# What each layer may import from callboard. `actors` installs as `callboard` itself.
ALLOWED = {layer: LAYERS[: height + 1] for height, layer in enumerate(LAYERS)}

# The folders of a layer, from the bottom up. Each may import from those before it. A folder's name
# stands for its contents, except for subfolders and files that are listed themselves.
ORDERS = [
    ["core", "core/threads", "core/memory", "core/monitoring"],
    ["mailbox", "mailbox/ordered", "mailbox/shared"],
    ["scheduling/flow", "scheduling/elasticity", "scheduling"],
    ["scheduling/worker", "scheduling/tracing", "scheduling/config"],
    [
        "actors/rows",
        *(f"actors/_inside{name}" for name in ("/answers", "/sending", "/life", "/receiving", "")),
    ],
    [
        f"actors/streams{name}"
        for name in (
            "/errors",
            "/checks",
            "/programs",
            "/programs/rows",
            "/programs/windows",
            "/programs/merging",
            "/programs/columns",
            "/programs/joins/comparing",
            "/programs/joins/kernel",
            "/programs/joins",
            "/native",
            "/planning",
            "/operators",
            "/drawing",
            "/snapshots",
            "/experiments",
            "/processes",
            "/running",
            "/chaining",
            "",
        )
    ],
    [f"actors/channels{name}" for name in ("/kernel", "")],
    [f"actors/frequency{name}" for name in ("/counting", "/designs", "")],
    [
        f"actors/nets{name}"
        for name in (
            "/errors",
            "/terms",
            "/language",
            "/types",
            "/json_lines",
            "/drawing",
            "/kernel",
            "/running",
            "/building",
            "",
        )
    ],
    [
        f"actors/remote{name}"
        for name in (
            "/errors",
            "/wire",
            "/protocol",
            "/sockets",
            "/storage",
            "/staging",
            "/client",
            "/server",
            "/sharding",
            "",
        )
    ],
    [
        f"actors/spark{name}"
        for name in ("/errors", "/context", "/sessions", "/frames", "/tasks", "/source", "")
    ],
    # Features: only other features import them.
    [
        "actors",
        "actors/asks",
        "actors/worker_processes",
        "actors/frequency",
        "actors/channels",
        "actors/nets",
        "actors/remote/errors",
        "actors/remote/wire",
        "actors/streams",
        "actors/remote",
        "actors/routers",
        "actors/pools",
        "actors/spark",
        "actors/demo",  # uses all of them
    ],
    ["actors", "actors/testing"],
    ["actors", "actors/dashboard"],
    ["actors/observing/tracing", "actors/observing"],
    ["actors/diagnosis", "actors/observing", "actors/system"],
]

# The only imports against the orders above. Each is inside a function, and loads a feature at its
# first use. Imports that are needed only for types are under `if TYPE_CHECKING`.
LATE = {
    "actors/system": {
        "actors/pools/pool",  # pool() starts processes
        "actors/routers/router",  # the type of what pool() returns
    },
    "actors/__main__": {  # each command, when it runs
        "actors/demo/bench",
        "actors/demo/shop",
        "actors/nets/running/program",
        "actors/remote/client/health_command",
        "actors/remote/server/serve",
        "actors/dashboard/serving",
    },
}

# The bases of this class return it, so their files and its file name each other's types.
STREAM = Path("actors/streams/chaining/stream")


def layer_of(name: str) -> str | None:
    """Return the layer that a dotted name belongs to, or None for another package's name."""
    place = place_of(name)
    return None if place is None else place.parts[0]


def violations(path: Path, text: str) -> list[str]:
    """List the forbidden imports of the source at `path`, which is relative to the root."""
    allowed = ALLOWED[path.parts[0]]
    found = []
    if path.suffix != ".hpp":
        for name in names_imported(path, text):
            folder = layer_of(name)
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
            folder = layer_of(name.replace("/", "."))
            if name == "atomic" and path != Path("core/atomics.hpp"):
                found.append(f"{path}: <atomic> goes round core/atomics.hpp")
            elif ".." in Path(name).parts or name.split("/")[0] in ALLOWED:
                found.append(f"{path}: {name} does not begin with callboard/")
            elif folder is not None and folder not in allowed:
                found.append(f"{path}: {name} is in {folder}")
    return found


def upwards(graph: dict[Path, set[Path]]) -> list[str]:
    """List the imports that violate the orders of folders."""

    def rank(unit: Path, order: list[str]) -> int:
        holds = [at for at, name in enumerate(order) if Path(name) in (unit, *unit.parents)]
        return max(holds, key=lambda at: len(order[at]), default=-1)

    return sorted(
        f"{unit} -> {needed}"
        for order in ORDERS
        for unit, all_needed in graph.items()
        for needed in all_needed
        if 0 <= rank(unit, order) < rank(needed, order)
    )


def without_late(graph: dict[Path, set[Path]]) -> dict[Path, set[Path]]:
    """Return the graph without the imports that are declared to be late."""
    return {
        unit: {one for one in needed if str(one) not in LATE.get(str(unit), ())}
        for unit, needed in graph.items()
    }


def imports_at_once(text: str) -> set[Path | None]:
    """Return what a Python source imports when it is imported itself."""
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    return {
        place_of(name)
        for node in nodes
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }


@pytest.mark.parametrize("unit", LATE)
def test_late_imports_stand_in_functions(root: Path, unit: str) -> None:
    late = {Path(one) for one in LATE[unit]}
    assert late <= imports(root, for_types=True)[Path(unit)]
    assert late & imports_at_once((root / f"{unit}.py").read_text()) == set()


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


def test_no_folder_imports_from_a_later_one_of_its_layer(root: Path) -> None:
    assert upwards(without_late(imports(root))) == []


def test_no_files_import_each_other_in_a_circle(root: Path) -> None:
    assert circles(without_late(imports(root))) == []


def test_no_files_name_each_others_types_in_a_circle(root: Path) -> None:
    graph = without_late(imports(root, for_types=True))
    for unit, needed in graph.items():
        if unit.parent == STREAM.parent:
            needed.discard(STREAM)
    assert circles(graph) == []


def test_every_folder_has_its_place_in_an_order(root: Path) -> None:
    folders = {str(unit.parent) for unit in imports(root) if unit.stem != "__init__"}
    ordered = {name for order in ORDERS for name in order if (root / name).is_dir()}
    assert folders | set(ALLOWED) == ordered | set(ALLOWED)


def test_every_name_in_an_order_is_there(root: Path) -> None:
    places = set(imports(root))
    names = {Path(name) for order in ORDERS for name in order}
    assert names - places - {parent for place in places for parent in place.parents} == set()


def unused_headers(graph: dict[Path, set[Path]]) -> set[str]:
    """Return the headers that no module includes, be it through others."""
    used: set[Path] = set()
    found = {unit for unit in graph if unit.suffix != ".hpp"}
    while found:
        used |= found
        found = {needed for unit in found for needed in graph[unit]} - used
    return {str(unit) for unit in graph if unit not in used}


def test_every_header_is_used_by_a_module(root: Path) -> None:
    # What only tests and benchmarks compile lies with them, in tests/bench/peers.
    assert unused_headers(imports(root)) == set()


def test_a_header_that_only_an_unused_one_includes_is_unused(tmp_path: Path) -> None:
    texts = {
        "core/a.hpp": "",
        "core/b.pxd": 'cdef extern from "callboard/core/b.hpp":\n    pass',
        "core/b.hpp": '#include "callboard/core/c.hpp"',
        "core/c.hpp": "",
        "mailbox/d.hpp": '#include "callboard/core/a.hpp"',
    }
    assert unused_headers(write(tmp_path, texts)) == {"core/a.hpp", "mailbox/d.hpp"}


@pytest.mark.parametrize(
    ("texts", "circle"),
    [
        (
            {
                "actors/a.py": "from callboard.b import x",
                "actors/b.py": "def f():\n    from callboard import a",
            },
            ["actors/a", "actors/b"],
        ),
        (
            {
                "actors/a.pyx": "from callboard._in.b cimport B",
                "actors/a.pxd": "cdef class A:\n    pass",
                "actors/_in/b.pyx": "from callboard._in.c import (\n    x,\n    y,\n)",
                "actors/_in/b.pxd": "cdef class B:\n    pass",
                "actors/_in/c.py": "import callboard.a",
            },
            ["actors/_in/b", "actors/_in/c", "actors/a"],
        ),
        (
            {"core/a.hpp": '#include "callboard/core/b.hpp"', "core/b.hpp": '#include "a.hpp"'},
            ["core/a.hpp", "core/b.hpp"],
        ),
        (
            {
                "actors/spark/__init__.py": "from callboard.spark.a import a",
                "actors/spark/a.py": "from callboard.spark import b",
            },
            ["actors/spark/__init__", "actors/spark/a"],
        ),
    ],
)
def test_a_circle_is_found(texts: dict[str, str], circle: list[str], tmp_path: Path) -> None:
    assert circles(write(tmp_path, texts)) == [circle]


def test_imports_for_types_alone_make_a_circle_of_types_alone(tmp_path: Path) -> None:
    texts = {
        "actors/a.py": "from callboard.b import x",
        "actors/b.py": "if TYPE_CHECKING:\n    from callboard.a import y",
        "actors/b.pyi": "from callboard.a import y",
    }
    assert circles(write(tmp_path, texts)) == []
    assert circles(imports(tmp_path, for_types=True)) == [["actors/a", "actors/b"]]


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("mailbox/a.hpp", '#include "callboard/mailbox/ordered/b.hpp"', True),
        ("mailbox/ordered/a.hpp", '#include "callboard/mailbox/ordered/b.hpp"', False),
        ("actors/system.py", "def f():\n    from callboard.streams.run import run", True),
        ("actors/system.py", 'streams = import_module("callboard.streams.run")', True),
        ("actors/system.pyx", "streams = __import__('callboard.streams.run')", True),
        ("actors/system.py", 'NAME = "callboard.streams.run"', False),
        ("actors/_inside/life/a.pyx", "cimport callboard.streams.run", True),
        ("actors/spark/a.py", "from callboard.streams.run import run", False),
        ("actors/streams/a.py", "from callboard.spark.host import Host", True),
        ("actors/streams/a.py", "from callboard.system import ActorSystem", False),
        ("actors/_inside/answers/a.pyx", "from callboard._inside.sending.ref cimport R", True),
        ("actors/_inside/sending/a.pyx", "from callboard._inside.answers.future cimport F", False),
    ],
)
def test_upward_imports_are_found(path: str, text: str, found: bool, tmp_path: Path) -> None:
    texts = {
        "mailbox/ordered/b.hpp": "",
        "actors/spark/host.py": "",
        "actors/streams/run.py": "",
        "actors/system.py": "",
        "actors/_inside/sending/ref.pyx": "",
        "actors/_inside/answers/future.pyx": "",
    }
    assert bool(upwards(write(tmp_path, texts | {path: text}))) == found
