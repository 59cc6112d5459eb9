"""Compile the native unit tests and run them, one test here for each program.

The stress tests under the sanitizers take minutes: `make -C tests/native stress asan`.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).parent / "native"
PROGRAMS = sorted(path.stem for path in NATIVE.glob("test_*.cpp"))
COMPILER = os.environ.get("CXX", "c++")


@pytest.fixture(scope="session")
def native_build(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for tool in ("make", COMPILER.split()[0]):
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is not installed")
    return tmp_path_factory.mktemp("native")


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_native_unit_tests_pass(program: str, native_build: Path) -> None:
    target = native_build / program
    make = ["make", "-C", str(NATIVE), f"BUILD={native_build}", f"CXX={COMPILER}", str(target)]
    compiled = subprocess.run(make, check=False, capture_output=True, text=True)
    assert compiled.returncode == 0, compiled.stderr
    run = subprocess.run([target], check=False, capture_output=True, text=True, timeout=240)
    assert run.returncode == 0, run.stdout + run.stderr


def test_there_are_native_unit_tests() -> None:
    assert PROGRAMS
