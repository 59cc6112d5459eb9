"""Seeded defects in compiled modules, which no test detects, but an assertion does.

Each is put into a copy of one module, which takes the module's place in another process. The
headers' assertions stay as they are in the installed modules, since types depend on them.
"""

import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

# An assertion of the copy fails if the process is to see it, and says nothing otherwise.
ASSERTING = """#pragma once
#include <cstdio>
#include <cstdlib>
inline bool fail(const char* condition) {
    if (std::getenv("ASSERTING") == nullptr) return true;
    std::fprintf(stderr, "does not hold: %s\\n", condition);
    std::abort();
}
#define callboard_holds(condition) ((condition) || fail(#condition))
"""
# In the process that runs the tests: where the module is found from now on.
FINDER = """
import sys
from importlib.abc import MetaPathFinder
from importlib.util import spec_from_file_location

class Finder(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        return spec_from_file_location(name, {library!r}) if name == {module!r} else None

sys.meta_path.insert(0, Finder())
"""
DIRECTIVES = {"binding": False, "wraparound": False, "cdivision": True, "initializedcheck": False}
DIRECTIVES |= {"allow_none_for_extension_args": False, "nonecheck": True, "auto_pickle": False}


class Seed(NamedTuple):
    source: str
    right: str
    wrong: str
    tests: str


SEEDS = {
    "a key that is dropped leaves the number of its first row behind": Seed(
        "actors/streams/programs/rows/tables.pyx",
        "            del self.born[key]\n",
        "            pass\n",
        "tests/streams/test_windows.py tests/streams/test_partitions.py",
    ),
    "a fence outlives the message that waited for it": Seed(
        "actors/_inside/sending/pending_sends.pyx",
        "        self.timer = self.fence = None\n",
        "        self.timer = None\n",
        "tests/actors/test_room_on_event_loop.py",
    ),
    "a channel side is searched for deadlocks before a wait has noted it": Seed(
        "actors/channels/wait.pyx",
        "                return False\n            side.is_noted = True\n",
        "                return False\n",
        "tests/channels/test_deadlocks.py",
    ),
}


def module_of(seed: Seed) -> str:
    return seed.source.replace("actors/", "callboard/").removesuffix(".pyx").replace("/", ".")


@pytest.fixture(scope="module")
def translations(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the C++ of each module's copy, which has the defect."""
    folder = tmp_path_factory.mktemp("seeded")
    shape = folder / "shape"  # the sources as they are installed, as `meson.build` lays them out
    shutil.copytree(root / "actors", shape / "callboard", copy_function=os.symlink)
    for layer in ("core", "mailbox", "scheduling"):
        (shape / "callboard" / layer).symlink_to(root / layer)
    for seed in SEEDS.values():
        text = (root / seed.source).read_text()
        assert text.count(seed.right) == 1, f"{seed.right!r} is no longer in {seed.source}"
        copy = shape / seed.source.replace("actors/", "callboard/")
        copy.unlink()
        copy.write_text(text.replace(seed.right, seed.wrong))
    (folder / "callboard" / "core").mkdir(parents=True)
    (folder / "callboard" / "core" / "asserting.hpp").write_text(ASSERTING)
    options = [word for name, value in DIRECTIVES.items() for word in ("-X", f"{name}={value}")]
    modules = [module_of(seed) for seed in SEEDS.values()]
    run = [sys.executable, str(root / "cythonize.py"), str(shape), "-3", "--cplus"]
    run += [*options, "--", *modules]
    env = {name: value for name, value in os.environ.items() if name != "CYTHON_KEPT"}
    subprocess.run(run, check=True, cwd=folder, env=env)
    return folder


def flags_of_installed() -> list[str]:
    """Return how the headers' assertions are switched where callboard is installed."""
    spec = find_spec("callboard.scheduling.worker")
    assert spec is not None
    assert spec.origin is not None
    return [] if b"another thread is inside" in Path(spec.origin).read_bytes() else ["-DNDEBUG"]


def compiled(folder: Path, module: str) -> Path:
    library = folder / f"{module}{sysconfig.get_config_var('EXT_SUFFIX')}"
    options = ["-std=c++17", "-O0", "-w", "-fPIC", "-shared", "-fvisibility=hidden"]
    options += [f"-I{sysconfig.get_path('include')}", f"-I{folder / 'shape'}"]
    source = folder / f"{module}.cpp"
    subprocess.run(["c++", *options, *flags_of_installed(), source, "-o", library], check=True)
    return library


def outcome(
    root: Path, module: str, library: Path, tests: str, **said: str
) -> subprocess.CompletedProcess[str]:
    plugin = library.parent / "seeded.py"
    plugin.write_text(FINDER.format(module=module, library=str(library)))
    run = [sys.executable, "-m", "pytest", "-qxs", "-p", "seeded", "-p", "no:cacheprovider"]
    run.append("--hypothesis-profile=brief")
    paths = [str(library.parent), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, **said, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [*run, *tests.split()]
    return subprocess.run(
        command, env=env, cwd=root, timeout=300, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", SEEDS)
def test_an_assertion_sees_a_defect(name: str, root: Path, translations: Path) -> None:
    module, tests = module_of(SEEDS[name]), SEEDS[name].tests
    library = compiled(translations, module)
    unseen = outcome(root, module, library, tests)
    assert unseen.returncode == 0, unseen.stdout[-2000:]
    seen = outcome(root, module, library, tests, ASSERTING="1")
    assert seen.returncode != 0
    assert "does not hold: " in seen.stderr
