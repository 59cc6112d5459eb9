"""Builds the native actors of these tests against the installed package."""

import importlib.util
import subprocess
import sys
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
    name="behaviours",
    ext_modules=cythonize(
        Extension("behaviours", [{source!r}], language="c++", include_dirs=[include],
                  extra_compile_args=["-std=c++17", "-O1"]),
        include_path=[include],
        build_dir="made",
        compiler_directives={{"language_level": 3, "freethreading_compatible": True}},
    ),
)
"""


@pytest.fixture(scope="session")
def behaviours(wheel: Distribution, tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    pytest.importorskip("Cython")
    pytest.importorskip("setuptools")
    folder = tmp_path_factory.mktemp("behaviours")
    source = Path(__file__).with_name("behaviours.pyx")
    (folder / "behaviours.pyx").write_text(source.read_text())
    (folder / "setup.py").write_text(SETUP.format(source="behaviours.pyx"))
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    (built,) = folder.glob("behaviours*.so")
    spec = importlib.util.spec_from_file_location("behaviours", built)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
