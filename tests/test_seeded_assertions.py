"""Defects in compiled modules, which the tests do not see, and an assertion does.

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

ASSERTING = """#pragma once
#include <cstdio>
#include <cstdlib>
#ifndef ASSERTING
#define CYTHON_WITHOUT_ASSERTIONS
#endif
[[noreturn]] inline bool fail(const char* condition) {
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
        "actors/streams/programs/rows/stateful.pyx",
        "            del self.born[key]\n",
        "            pass\n",
        "tests/streams/test_windows.py tests/streams/test_partitions.py",
    ),
    "a fence outlives the message that waited for it": Seed(
        "actors/_inside/receiving/outgoing.pyx",
        "        self.timer = self.fence = None\n",
        "        self.timer = None\n",
        "tests/actors/test_room_on_event_loop.py",
    ),
    "a channel is looked at for circles though nobody noted it": Seed(
        "actors/channels/circles.pyx",
        "                return False\n            side.is_noted = True\n",
        "                return False\n",
        "tests/channels/test_circles.py",
    ),
}


def shape(root: Path, folder: Path) -> Path:
    """Lay the sources out as they are installed, as `meson.build` does."""
    folder.mkdir()
    shutil.copytree(root / "actors", folder / "callboard", copy_function=os.symlink)
    for floor in ("core", "mailbox", "scheduling"):
        (folder / "callboard" / floor).symlink_to(root / floor)
    return folder


def translated(root: Path, folder: Path, seed: Seed) -> tuple[str, Path]:
    """Return the module's name, and the C++ of its copy with the defect."""
    text = (root / seed.source).read_text()
    assert text.count(seed.right) == 1, f"{seed.right!r} is no longer in {seed.source}"
    module = seed.source.replace("actors/", "callboard/").removesuffix(".pyx").replace("/", ".")
    copy = folder / "module.pyx"
    copy.write_text(text.replace(seed.right, seed.wrong))
    (folder / "callboard" / "core").mkdir(parents=True)
    (folder / "callboard" / "core" / "asserting.hpp").write_text(ASSERTING)
    options = [word for name, value in DIRECTIVES.items() for word in ("-X", f"{name}={value}")]
    run = [sys.executable, "-m", "cython", "-3", "--cplus", "--module-name", module, *options]
    subprocess.run([*run, "-I", shape(root, folder / "shape"), copy], check=True, cwd=folder)
    return module, folder / "module.cpp"


def flags_of_installed() -> list[str]:
    """Return how the headers' assertions are switched where callboard is installed."""
    spec = find_spec("callboard.scheduling.worker")
    assert spec is not None
    assert spec.origin is not None
    return [] if b"another thread is inside" in Path(spec.origin).read_bytes() else ["-DNDEBUG"]


def compiled(source: Path, *flags: str) -> Path:
    library = source.with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))
    options = ["-std=c++17", "-O0", "-w", "-fPIC", "-shared", "-fvisibility=hidden"]
    options += [f"-I{sysconfig.get_path('include')}", f"-I{source.parent / 'shape'}"]
    subprocess.run(["c++", *options, *flags, source, "-o", library], check=True)
    return library


def outcome(root: Path, module: str, library: Path, tests: str) -> subprocess.CompletedProcess[str]:
    plugin = library.parent / "seeded.py"
    plugin.write_text(FINDER.format(module=module, library=str(library)))
    run = [sys.executable, "-m", "pytest", "-qxs", "-p", "seeded", "-p", "no:cacheprovider"]
    run.append("--hypothesis-profile=repeatable")  # what some examples see, and others do not
    paths = [str(library.parent), os.environ.get("PYTHONPATH", "")]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [*run, *tests.split()]
    return subprocess.run(
        command, env=env, cwd=root, timeout=300, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize("name", SEEDS)
def test_a_defect_that_the_tests_do_not_see_is_seen_by_an_assertion(
    name: str, root: Path, tmp_path: Path
) -> None:
    seed = SEEDS[name]
    ndebug = flags_of_installed()
    module, source = translated(root, tmp_path, seed)
    unseen = outcome(root, module, compiled(source, *ndebug), seed.tests)
    assert unseen.returncode == 0, unseen.stdout[-2000:]
    seen = outcome(root, module, compiled(source, "-DASSERTING", *ndebug), seed.tests)
    assert seen.returncode != 0
    assert "does not hold: " in seen.stderr
