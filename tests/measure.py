"""Measures the repository: `python -m tests.measure` prints its sizes and their targets."""

import ast
import importlib
import re
import sys
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from tests.sources import imports, sources, unit_of
from tests.test_english import FENCE, words
from tests.test_glossary import rows

ROOT = Path(__file__).parents[1]
AIMS = {
    "product lines": 84_000,
    "test lines": 118_000,
    "modules": 500,
    "compiled modules": 90,
    "modules with one importer": 150,
    "public names": 200,
    "public members": 600,
    "words of the glossary": 25,
    "words of docs": 80_000,
    "places: stateless operator": 4,
    "places: stateful operator": 6,
    "places: mailbox kind": 5,
    "places: reason for waiting": 3,
    "places: wire message": 6,
    "files from send to the flow": 7,
}
ADDITIONS = {
    "places: stateless operator": "A stateless operator",
    "places: stateful operator": "A stateful operator",
    "places: mailbox kind": "A kind of mailbox",
    "places: reason for waiting": "A reason for waiting",
    "places: wire message": "A kind of message between processes",
}
"""The additions whose places are counted, as CONTRIBUTING calls them."""
PATH = re.compile(r"`([\w./]*(?:\.(?:py|pyi|pyx|pxd|hpp|js|build)|/))`")
SUFFIXES = {".py", ".pyi", ".pyx", ".pxd", ".pxi", ".hpp", ".cpp", ".sh"}
PUBLIC = (
    "",
    "asks",
    "channels",
    "dashboard",
    "frequency",
    "native",
    "nets",
    "observing",
    "observing.opentelemetry",
    "observing.prometheus",
    "policies",
    "pools",
    "remote",
    "remote.errors",
    "routers",
    "spark",
    "spark.errors",
    "streams",
    "streams.native",
    "testing",
)
"""The public modules below `callboard`: those with an `__all__` for users."""


def lines(paths: Iterable[Path]) -> int:
    """Count the lines of files."""
    return sum(len(path.read_bytes().splitlines()) for path in paths)


def rooms(root: Path) -> Counter[str]:
    """Count the modules of each folder. The files of one name, in all languages, are one module."""
    found = {path.with_suffix("") for path in sources(root) if path.stem != "__init__"}
    return Counter(str(module.parent) for module in found)


def with_one_importer(root: Path) -> set[Path]:
    """Return the modules that exactly one other module imports or includes."""
    needing: dict[Path, set[Path]] = {}
    for unit, needed in imports(root, for_types=True).items():
        for one in needed:
            module = one.with_suffix("")
            if module != unit.with_suffix("") and module.name != "__init__":
                needing.setdefault(module, set()).add(unit.with_suffix(""))
    return {module for module, units in needing.items() if len(units) == 1}


def public_names(root: Path, module: str) -> list[str]:
    """Return the names in a module's `__all__`, read from its text: it need not be importable."""
    stem = root.joinpath("actors", *module.split("."))
    places = (stem.with_suffix(".py"), stem.with_suffix(".pyi"), stem / "__init__.py")
    text = next(path for path in places if path.is_file()).read_text()
    for node in ast.parse(text).body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(one, ast.Name) and one.id == "__all__" for one in targets):
            assert isinstance(node, ast.Assign)
            return [str(name) for name in ast.literal_eval(node.value)]
    raise ValueError(f"{module} has no __all__")


def members(cls: type) -> set[str]:
    """Return the public attributes of a class, without those that every actor or error has."""
    from callboard import Actor
    from callboard.native import NativeActor

    known = [base for base in (object, dict, BaseException, Actor, NativeActor) if cls is not base]
    inherited = {name for base in known if issubclass(cls, base) for name in dir(base)}
    ours = [base for base in cls.__mro__ if base.__module__.partition(".")[0] == "callboard"]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")}
    return names - inherited


def public_members(root: Path) -> tuple[int, list[str]]:
    """Count the members of the public classes, and name the modules that cannot be imported."""
    classes: set[type] = set()
    missing = []
    for module in PUBLIC:
        name = f"callboard.{module}".rstrip(".")
        try:
            found = importlib.import_module(name)
        except ImportError:
            missing.append(name)
            continue
        named = (getattr(found, each) for each in public_names(root, module))
        classes |= {each for each in named if isinstance(each, type)}
    return sum(len(members(cls)) for cls in classes), missing


def places(contributing: str, addition: str) -> set[str]:
    """Return the places of an addition: those that its entry names, and those of every addition."""
    _, found, rest = contributing.partition(f"**{addition}**:")
    if not found:
        raise ValueError(f"CONTRIBUTING has no entry for {addition!r}")
    entry = re.split(r"\n- |\n\n| \*\*", rest)[0]
    listed = {"meson.build"} if re.search(r"\bfile\s+(?:in|beside)\b", entry) else set()
    named = {*PATH.findall(entry), *listed}
    if not any(path.startswith("tests/") for path in named):
        named.add("its test")
    return {*named, "its row in docs/", "CHANGELOG.md"}


def files_of_a_send() -> set[str]:
    """Return the modules in which a sent batch is handled, up to the flow, by a traced run.

    Functions of C that compiled modules call are not seen, and neither are `with` statements.
    """
    from callboard import ActorSystem
    from callboard.streams import entry

    found: set[str] = set()

    def note(frame: FrameType, event: str, called: Any) -> None:
        module = None
        if event == "call":
            module = frame.f_globals.get("__name__", "")
        elif event == "c_call":
            module = getattr(called, "__module__", None)
            module = module or type(getattr(called, "__self__", None)).__module__
        if module is not None and module.startswith("callboard."):
            found.add(module)
            if getattr(called, "__name__", "") == "try_admit":
                sys.setprofile(before)

    with ActorSystem(workers=1) as system:
        run = system.run(entry("numbers", int).map(str).collect())
        run.send("numbers", [1])  # the first starts the programs
        before = sys.getprofile()
        sys.setprofile(note)
        try:
            run.send("numbers", [2])
        finally:
            sys.setprofile(before)
        run.finish()
    return found


def measure(root: Path) -> dict[str, int]:
    """Return the measures, by their names in AIMS."""
    product = sources(root)
    tests = [path for path in (root / "tests").rglob("*") if path.suffix in SUFFIXES]
    built = root / "tests" / "native" / "build"
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    contributing = (root / "CONTRIBUTING.md").read_text()
    glossary = (root / "docs" / "design" / "glossary.md").read_text()
    return {
        "product lines": lines(root / path for path in product),
        "test lines": lines(path for path in tests if built not in path.parents),
        "modules": rooms(root).total(),
        "compiled modules": len({unit_of(path) for path in product if path.suffix == ".pyx"}),
        "modules with one importer": len(with_one_importer(root)),
        "public names": sum(len(set(public_names(root, module))) for module in PUBLIC),
        "public members": public_members(root)[0],
        "words of the glossary": len(rows(glossary)),
        "words of docs": sum(words(FENCE.sub("", page.read_text())) for page in pages),
        **{name: len(places(contributing, each)) for name, each in ADDITIONS.items()},
        "files from send to the flow": len(files_of_a_send()),
    }


def table(now: dict[str, int]) -> str:
    """Return a table of measures, with what they should be."""
    rows = [f"{name:<28} | {now[name]:>8,} | {aim:>8,}" for name, aim in AIMS.items()]
    return "\n".join([f"{'measure':<28} | {'now':>8} | {'aim':>8}", *rows])


def main() -> None:
    """Print the measures, the size of each folder, and the modules that could not be imported."""
    print(table(measure(ROOT)))
    print("\nmodules by room:")
    print(*(f"  {count:>3}  {room}" for room, count in rooms(ROOT).most_common()), sep="\n")
    if missing := public_members(ROOT)[1]:
        print("\nwithout the members of these, which cannot be imported here:", *missing)


if __name__ == "__main__":
    main()
