"""Builds the native actors and operators of these tests against the installed package."""

import importlib.util
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import Distribution
from pathlib import Path
from types import ModuleType

import pytest

SETUP = """
import callboard
from Cython.Build import cythonize
from setuptools import Extension, setup

include = callboard.get_include()
setup(
    name="{name}",
    ext_modules=cythonize(
        Extension("{name}", ["{name}.pyx"], language="c++", include_dirs=[include, {shapes!r}],
                  extra_compile_args=["-std=c++17", "-O0"]),
        include_path=[include],
        build_dir="made",
        compiler_directives={{"language_level": 3, "freethreading_compatible": True}},
    ),
)
"""

# A header of the benchmarks' operators.
SHAPES = Path(__file__).parents[1] / "bench" / "natives"


@pytest.fixture(scope="session")
def behaviours(wheel: Distribution, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """The native actors beside this file."""
    return build(Path(__file__).with_name("behaviours.pyx"), tmp_path_factory)


@pytest.fixture(scope="session")
def operators(
    wheel: Distribution, tmp_path_factory: pytest.TempPathFactory, root: Path
) -> ModuleType:
    """The native operators of the benchmarks."""
    return build(root / "tests/bench/natives/streams.pyx", tmp_path_factory)


def build(source: Path, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    """Compile and import a module."""
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    if shutil.which(str(sysconfig.get_config_var("CXX")).split()[0]) is None:
        pytest.skip("there is no C++ compiler on PATH")
    folder = tmp_path_factory.mktemp(source.stem)
    (folder / source.name).write_text(source.read_text())
    (folder / "setup.py").write_text(SETUP.format(name=source.stem, shapes=str(SHAPES)))
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (built,) = folder.glob(f"{source.stem}*.so")
    spec = importlib.util.spec_from_file_location(source.stem, built)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with pytest.MonkeyPatch.context() as patch:
        # A compiled module enters itself for good. A folder of the benchmarks is called `streams`.
        patch.setitem(sys.modules, source.stem, module)
        spec.loader.exec_module(module)
    return module
