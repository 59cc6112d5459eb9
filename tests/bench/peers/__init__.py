"""The native programs, compiled on demand into the build folder; missing ones are reported."""

import os
import shutil
import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

import callboard

HERE = Path(__file__).parent
BUILD = HERE.parents[2] / "build" / "bench"
CXX = os.environ.get("CXX", "c++")
CXXFLAGS = ("-std=c++17", "-O3", "-march=native", "-pthread")


@dataclass(frozen=True)
class Program:
    """A native program: its source, what it needs, and how it is built and called."""

    source: str
    tools: tuple[str, ...]  # commands that must be there
    build: tuple[str, ...]  # {source} and {target} are filled in
    header: str = ""  # a C++ header that must be there
    call: tuple[str, ...] = ("{target}", "{benchmark}", "{size}", "{workers}")
    ours: bool = False  # includes callboard's headers

    def missing(self) -> str:
        """Say what is not installed; empty when nothing is."""
        for tool in self.tools:
            if shutil.which(tool) is None:
                return f"{tool} is not installed"
        if self.header:
            probe = [CXX, "-E", "-x", "c++", "-include", self.header, os.devnull]
            if subprocess.run(probe, capture_output=True, check=False).returncode:
                return f"{self.header} is not installed"
        return ""

    def compile(self) -> None:
        """Build the program unless it is newer than its sources.

        Raises subprocess.CalledProcessError when the compiler fails.
        """
        BUILD.mkdir(parents=True, exist_ok=True)
        target = BUILD / Path(self.source).stem
        if self.build[0] == "erlc":
            target = target.with_suffix(".beam")
        sources = [HERE / self.source, *HERE.glob("*.hpp")]
        if self.ours:
            sources.append(Path(callboard.__file__))
        newest = max(path.stat().st_mtime for path in sources)
        if not target.exists() or target.stat().st_mtime < newest:
            subprocess.run(self._fill(self.build), cwd=BUILD, check=True)

    def command(self, benchmark: str, size: int, workers: int = 1) -> list[str]:
        """Return the command line that runs `benchmark`."""
        return self._fill(self.call, benchmark=benchmark, size=str(size), workers=str(workers))

    def _fill(self, words: tuple[str, ...], **values: str) -> list[str]:
        source, target = HERE / self.source, BUILD / Path(self.source).stem
        values |= {"include": callboard.get_include()} if self.ours else {}
        return [word.format(source=source, target=target, build=BUILD, **values) for word in words]


def cxx(source: str, *libraries: str, header: str = "") -> Program:
    build = (CXX, *CXXFLAGS, "{source}", "-o", "{target}", *libraries)
    return Program(source, (CXX,), build, header)


def stages(name: str) -> Program:
    """Return one of the native benchmarks, which compile our structures and those beside them."""
    return replace(cxx(f"../../native/bench/bench_{name}.cpp", "-I{include}"), ours=True)


PROGRAMS = {
    "flow": stages("flow"),
    "structures": stages("structures"),
    "summaries": stages("streams_of_keys"),
    "floor": cxx("floor.cpp"),
    "caf": cxx("caf.cpp", "-lcaf_core", header="caf/all.hpp"),
    "free_ports": replace(cxx("free_ports.cpp", "-I{include}"), ours=True),
    "tbb": replace(
        cxx("tbb.cpp", "-I{include}", "-ltbb", header="tbb/parallel_pipeline.h"), ours=True
    ),
    "go": Program("goroutines.go", ("go",), ("go", "build", "-o", "{target}", "{source}")),
    "erlang": Program(
        "processes.erl",
        ("erlc", "erl"),
        ("erlc", "-o", "{build}", "{source}"),
        call=(
            *("erl", "+S", "{workers}:{workers}", "-noinput", "-pa", "{build}"),
            *("-run", "processes", "main", "{benchmark}", "{size}"),
        ),
    ),
}
