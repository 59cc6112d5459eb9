"""A priority policy in Cython: the one that docs/policies.md shows, built and run."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.policies import PriorityPolicy

pytestmark = pytest.mark.timeout(600)  # a compiler is slow on a busy machine

Hold = Callable[[ActorSystem], AbstractContextManager[None]]

BLOCK = re.compile(r"^```cython turns\.pyx\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Noter(Actor[Any]):
    def __init__(self, label: str, notes: list[str]) -> None:
        self.label = label
        self.notes = notes

    def receive(self, message: Any) -> None:
        self.notes.append(self.label)


@pytest.fixture(scope="module")
def turns(root: Path, tmp_path_factory: pytest.TempPathFactory) -> type[PriorityPolicy]:
    """Compile the page's policy against the sources, in the shape in which they are installed."""
    pytest.importorskip("Cython", reason="Cython is not installed")
    compiler = os.environ.get("CXX") or shutil.which("c++") or pytest.skip("no C++ compiler")
    (source,) = BLOCK.findall((root / "docs" / "policies.md").read_text(encoding="utf-8"))
    folder = tmp_path_factory.mktemp("turns")
    shutil.copytree(root / "actors", folder / "callboard")
    for lower in ("core", "mailbox", "scheduling"):
        shutil.copytree(root / lower, folder / "callboard" / lower)
    (folder / "turns.pyx").write_text(source, encoding="utf-8")
    module = folder / f"turns{sysconfig.get_config_var('EXT_SUFFIX')}"
    cythonize = [sys.executable, "-m", "cython", "--cplus", "-3", f"-I{folder}"]
    directives = ["-X", "freethreading_compatible=True"]
    subprocess.run([*cythonize, *directives, "turns.pyx"], cwd=folder, check=True)
    options = ["-std=c++17", "-O0", "-shared", "-fPIC"]
    includes = [f"-I{folder}", f"-I{sysconfig.get_path('include')}"]
    command = [*compiler.split(), *options, *includes, "turns.cpp", "-o", str(module)]
    subprocess.run(command, cwd=folder, check=True)
    spec = importlib.util.spec_from_file_location("turns", module)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    policy: type[PriorityPolicy] = loaded.Turns
    return policy


def test_a_policy_in_cython_decides_the_order(turns: type[PriorityPolicy], hold: Hold) -> None:
    notes: list[str] = []
    with ActorSystem(priority=turns) as system:
        plain = [system.spawn(Noter, label, notes) for label in "abc"]
        given = [system.spawn(Noter, label, notes, priority=1) for label in "ABC"]
        with hold(system):
            for actor in [*plain, *given]:
                actor.tell(1)
    assert "".join(notes) == "AaBbCc"


def test_a_policy_in_cython_loses_no_message_with_two_workers(turns: type[PriorityPolicy]) -> None:
    class Pong(Actor[int]):
        def receive(self, message: int) -> None:
            if message:
                actors[message % len(actors)].tell(message - 1)

    with ActorSystem(priority=turns, workers=2) as system:
        actors = [system.spawn(Pong, priority=i % 2) for i in range(10)]
        for actor in actors:
            actor.tell(200)
        system.drain()
        assert sum(actor.statistics().messages for actor in actors) == 10 * 201
