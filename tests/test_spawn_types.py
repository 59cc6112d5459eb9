"""Types of spawns, by mypy and by pyright.

A line of the program that ends in `# -> ...` reveals a type or is an error, and the messages of
both checkers contain that text. No other line, nor README or the examples, has an error.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.checkers import by_mypy
from tests.test_snippets import programs

PROGRAM = """
from functools import partial
from typing import Any, Generic, TypeVar, Unpack

from callboard import Actor, ActorOptions, ActorRef, ActorSystem, BoundedMailbox, SpawnOptions
from callboard.routers import KeyRouter, RoundRobinRouter

class Counter(Actor[int, str]):
    def __init__(self, start: int = 0, *, step: int = 1) -> None:
        self.count = start

    def receive(self, increment: int) -> str:
        self.become(self.wrong)  # -> float
        return str(self.count)

    def wrong(self, increment: int) -> float:
        return 1.0

class Later(Actor[int, str]):
    async def receive(self, message: int) -> str:
        counter = self.spawn(Counter, 1, nmae="x")  # -> nmae
        return await self.spawn(Counter, 1, name="x").ask(message)

class Deferred(Actor[int, str]):
    def __init__(self, counter: ActorRef[int, str]) -> None:
        self.counter = counter

    def receive(self, message: int) -> object:  # -> receive
        return self.counter.ask(message)

class Plain(Actor[int]):
    def receive(self, message: int) -> float:
        return 1.0

M = TypeVar("M")

class Same(Actor[M, M], Generic[M]):
    def __init__(self, kind: type[M]) -> None:
        self.kind = kind

    def receive(self, message: M) -> M:
        return message

class Empty(Actor[M, list[M]], Generic[M]):
    def receive(self, message: M) -> list[M]:
        return [message]

def use(system: ActorSystem) -> None:
    counter = system.spawn(Counter, 1, name="counter", mailbox=BoundedMailbox(3))
    reveal_type(counter)  # -> ActorRef[int, str]
    reveal_type(counter.ask(1))  # -> Future[str]
    reveal_type(counter.ask(1).result(timeout=1.0))  # -> str
    reveal_type(system.spawn(Plain).ask(1))  # -> Future[Any]
    reveal_type(system.spawn(Same, int, dedicated=True).ask(1))  # -> Future[int]
    reveal_type(system.spawn(Empty[int]).ask(1))  # -> Future[list[int]]
    reveal_type(system.spawn(Counter, step=3))  # -> ActorRef[int, str]
    reveal_type(system.spawn(partial(Counter, step=3), 1, name="x"))  # -> ActorRef[int, str]
    anything: ActorRef[int, Any] = counter
    wider: ActorRef[int, object] = counter
    other: ActorRef[int, int] = counter  # -> ActorRef[int, int]
    system.spawn(Counter, 1, superviison="restart")  # -> superviison
    system.spawn(Counter, supervision="restrat")  # -> spawn
    system.spawn(Counter, 1, mailbox=3)  # -> spawn
    system.spawn(Counter, "one")  # -> int
    system.spawn(Counter, "one", name="counter")  # -> spawn
    system.spawn(Counter, 1, 2)  # -> spawn
    system.spawn(Counter, stop=2)  # -> stop
    system.spawn(partial(Counter, step="3"), name="x")  # -> int
    system.spawn(Same)  # -> spawn
    system.spawn(int)  # -> spawn
    pool = system.pool(Counter, 1, processes=2, priority=3)
    reveal_type(pool)  # -> Router[int, str]
    reveal_type(pool.ask(1))  # -> Future[str]
    pool.tell("one")  # -> int
    system.pool(Counter, "one", processes=2)  # -> pool
    system.pool(Counter, 1, proceses=2)  # -> proceses
    router = RoundRobinRouter.spawn(system, Counter, 1, routees=2, supervision="resume")
    reveal_type(router)  # -> RoundRobinRouter[int, str]
    reveal_type(router.ask(1))  # -> Future[str]
    router.ask("one")  # -> int
    RoundRobinRouter.spawn(system, Counter, 1, routes=2)  # -> routes
    KeyRouter.spawn(system, Counter, routees=2)  # -> by
    ActorSystem(wokers=2)  # -> wokers

def spawned(system: ActorSystem, **options: Unpack[SpawnOptions]) -> ActorRef[int, str]:
    return system.spawn(Counter, 1, **options)

def several(system: ActorSystem, **options: Unpack[ActorOptions]) -> list[ActorRef[int, str]]:
    return [system.spawn(Counter, number, name=f"{number}", **options) for number in range(3)]
"""

EXPECTED = {
    number: text.partition("# -> ")[2]
    for number, text in enumerate(PROGRAM.splitlines(), start=1)
    if "# -> " in text
}
# The place of an editable install, whose modules type checkers do not see.
PATHS = [path for path in os.environ.get("MYPYPATH", "").split(":") if path]
ROOT = Path(__file__).parents[1]


def by_pyright(folder: Path, *files: Path) -> list[tuple[str, int, str]]:
    """Return pyright's messages in strict mode: files, lines, and texts."""
    pytest.importorskip("basedpyright")
    config = {
        "typeCheckingMode": "strict",
        "pythonVersion": "3.11",
        "include": [str(file) for file in files],
        "exclude": [str(ROOT / "examples/native")],
        "extraPaths": [*PATHS, str(ROOT / "examples")],
        "reportUnusedVariable": False,
        "reportUnusedExpression": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config))
    command = [sys.executable, "-m", "basedpyright", "--project", str(folder), "--outputjson"]
    command += ["--pythonpath", sys.executable]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    found = [
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1, each["message"])
        for each in json.loads(done.stdout)["generalDiagnostics"]
    ]
    if any('"callboard" could not be resolved' in text for _, _, text in found):
        pytest.skip("pyright does not see an editable install without MYPYPATH")
    return found


@pytest.fixture(scope="module", params=["mypy", "pyright"])
def said(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> dict[int, str]:
    """Return a checker's messages for each line of the program."""
    folder = tmp_path_factory.mktemp(request.param)
    (folder / "program.py").write_text(PROGRAM)
    if request.param == "mypy":
        return by_mypy(folder)
    texts: dict[int, str] = {}
    for _, number, text in by_pyright(folder, folder / "program.py"):
        texts[number] = f"{texts.get(number, '')}{text}\n"
    return texts


@pytest.mark.parametrize("number", EXPECTED)
def test_a_line_has_the_message_that_it_names(said: dict[int, str], number: int) -> None:
    text = PROGRAM.splitlines()[number - 1]
    assert EXPECTED[number] in said.get(number, "nothing at all"), text


def test_the_other_lines_have_no_message(said: dict[int, str]) -> None:
    assert {number: text for number, text in said.items() if number not in EXPECTED} == {}


def require_spark() -> None:
    for module in ("pyspark", "pyarrow", "pyarrow-stubs"):  # what examples import, with its types
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"needs {module}, which is not installed")


def test_the_programs_of_readme_pass_pyright(tmp_path: Path) -> None:
    require_spark()
    files = []
    for program in programs("README.md", (ROOT / "README.md").read_text(encoding="utf-8")):
        files.append(tmp_path / f"line_{program.first_line}.py")
        files[-1].write_text(program.source, encoding="utf-8")
    assert files
    assert by_pyright(tmp_path, *files) == []


def test_the_examples_pass_pyright(tmp_path: Path) -> None:
    require_spark()
    assert by_pyright(tmp_path, ROOT / "examples") == []
