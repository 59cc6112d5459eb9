"""The programs: the graphs on real threads and on simulated ones, and the one that measures."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
BUILD = ROOT / "build" / "bench" / "simulator"
CXX = os.environ.get("CXX", "c++")
CXXFLAGS = ("-std=c++17", "-O3", "-march=native", "-pthread", "-DNDEBUG")
LAYERS = ("core", "mailbox", "scheduling")
PATIENCE = 600  # seconds


def compiled(name: str) -> Path:
    """Build a program of this folder, unless it is newer than its sources; return its path."""
    include = BUILD / "include" / "callboard"
    include.mkdir(parents=True, exist_ok=True)
    for layer in LAYERS:
        if not (include / layer).exists():
            (include / layer).symlink_to(ROOT / layer)
    sources = [path for folder in (HERE, *(ROOT / layer for layer in LAYERS))
               for path in folder.rglob("*.[hc]pp")]  # fmt: skip
    target = BUILD / name
    first = []
    if name == "simulated":
        first = [f"-I{HERE / 'simulated_time'}", f"-I{widened().parents[3]}"]
    if not target.exists() or target.stat().st_mtime < max(p.stat().st_mtime for p in sources):
        command = [CXX, *CXXFLAGS, *first, f"-I{include.parent}", f"{HERE / name}.cpp"]
        subprocess.run([*command, "-o", f"{target}"], check=True)
    return target


def widened() -> Path:
    """Write a copy of pool.hpp with more lanes than the 64 of a word; return its path."""
    text = (ROOT / "scheduling" / "flow" / "pool.hpp").read_text()
    for ours, theirs in (
        ("std::uint64_t", "WideLanes"),
        ("__builtin_ctzll", "lowest_lane"),
        ("most_lanes = 64", "most_lanes = 64 * WideLanes::count"),
        ("#include <vector>\n", f'#include <vector>\n#include "{HERE / "wide_lanes.hpp"}"\n'),
    ):
        if ours not in text:
            raise RuntimeError(f"pool.hpp has no {ours} any more: how are its lanes to be widened?")
        text = text.replace(ours, theirs)
    path = BUILD / "wide" / "callboard" / "scheduling" / "flow" / "pool.hpp"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


def call(name: str, words: Sequence[str], given: str = "") -> list[dict[str, Any]]:
    """Run a program, and return the lines of JSON that it prints."""
    command = [str(compiled(name)), *words]
    done = subprocess.run(
        command, input=given, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def words_of(options: Mapping[str, object]) -> list[str]:
    return [f"{key}={value}" for key, value in options.items()]


def real(**options: object) -> dict[str, Any]:
    """Run a graph on real threads: seconds, and seconds of all processors, for its rounds."""
    return call("real", words_of(options))[0]


def simulated(machine: Mapping[str, Any], **options: object) -> dict[str, Any]:
    """Run a graph on a simulated machine."""
    return call("simulated", words_of(options), "\n".join(lines_of(machine)))[0]


def lines_of(machine: Mapping[str, Any]) -> list[str]:
    lines = [f"{name} {value}" for name, value in machine.items() if name in PARAMETERS]
    lines += [
        f"cost {cost['flops']} {cost['rows']} {' '.join(map(str, cost['ns']))}"
        for cost in machine["costs"]
    ]
    return lines


class Kept:
    """Simulated runs whose results are kept in a file, a line each: a run is played once.

    So figures that were interrupted go on, and share what they have in common. A file belongs to
    one machine and one state of the scheduler.
    """

    def __init__(self, machine: Mapping[str, Any], path: Path) -> None:
        self._machine = machine
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        results = map(json.loads, lines)
        self._known: dict[str, dict[str, Any]] = {each["options"]: each for each in results}
        compiled("simulated")

    def __call__(self, **options: object) -> dict[str, Any]:
        key = " ".join(sorted(words_of(options)))
        if key not in self._known:
            result = {**simulated(self._machine, **options), "options": key}
            with self._path.open("a") as file:
                file.write(json.dumps(result) + "\n")
            self._known[key] = result
        return self._known[key]


PARAMETERS = (
    *("instructions_ns", "update_ns", "second_cache_ns", "exposed", "near_ns", "far_ns", "kept_ns"),
    *("row_line_ns", "clock_ns", "wake_ns", "woken_ns", "switch_ns", "time_slice_ns"),
)
