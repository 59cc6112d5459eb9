"""Compile the native unit tests and run them, one test here for each source.

The stress tests under the sanitizers take minutes: `make -C tests/native stress asan`.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).parent / "native"
SOURCES = sorted(path.stem for path in NATIVE.glob("test_*.cpp"))
COMPILER = os.environ.get("CXX", "c++")


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the programs of the unit tests."""
    for tool in ("make", COMPILER.split()[0]):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    folder = tmp_path_factory.mktemp("native")
    make = ["make", "-C", str(NATIVE), "--jobs=2", f"BUILD={folder}", f"CXX={COMPILER}", "programs"]
    compiled = subprocess.run(make, check=False, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    return folder


@pytest.mark.timeout(1200)  # the first one compiles, which takes a minute
@pytest.mark.parametrize("source", SOURCES)
def test_the_native_unit_tests_pass(source: str, programs: Path) -> None:
    alone = programs / source
    command: list[str | Path] = [alone] if alone.exists() else [programs / "units", source]
    run = subprocess.run(command, check=False, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stdout + run.stderr


def test_there_are_native_unit_tests() -> None:
    assert SOURCES
