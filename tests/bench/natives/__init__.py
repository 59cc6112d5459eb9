"""Native actors, compiled on demand against the installed package.

`actors` are the behaviours of `savina`; `batches` is an entry point for Spark's record batches.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

HERE = Path(__file__).parent
BUILD = HERE.parents[2] / "build" / "bench"
SUFFIX = sysconfig.get_config_var("EXT_SUFFIX")


def missing() -> str:
    """Say what is not installed; empty when nothing is."""
    for module in ("callboard.native", "Cython"):
        try:
            found = importlib.util.find_spec(module)
        except ModuleNotFoundError:
            found = None
        if found is None:
            return f"{module} is not installed"
    import callboard

    try:
        callboard.get_include()
    except FileNotFoundError as error:
        return str(error)
    compiler = os.environ.get("CXX", "c++")
    return "" if shutil.which(compiler) else f"{compiler} is not installed"


def compile_actors(name: str = "actors") -> Path:
    """Build the module `name` unless it is newer than its source and than callboard.

    Return the folder from which it can be imported. Raises subprocess.CalledProcessError when a
    compiler fails.
    """
    import callboard

    source, target = HERE / f"{name}.pyx", BUILD / f"{name}{SUFFIX}"

    include = callboard.get_include()
    newest = max(path.stat().st_mtime for path in (source, Path(callboard.__file__)))
    if target.exists() and target.stat().st_mtime > newest:
        return BUILD
    BUILD.mkdir(parents=True, exist_ok=True)
    # Another process may do the same: it loads a whole module, or none.
    with TemporaryDirectory(dir=BUILD) as folder:
        built = Path(folder, target.name)
        _compile(source, built, include)
        os.replace(built, target)
    return BUILD


def _compile(source: Path, target: Path, include: str) -> None:
    generated = target.with_suffix(".cpp")
    cython = [sys.executable, "-m", "cython", "--cplus", "-3", "-I", include]
    directives = ["-X", "freethreading_compatible=True"]
    subprocess.run([*cython, *directives, str(source), "-o", str(generated)], check=True)
    folders = (include, sysconfig.get_path("include"), HERE)
    headers = [f"-I{folder}" for folder in folders]
    flags = ["-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-pthread"]
    compiler = os.environ.get("CXX", "c++")
    subprocess.run([compiler, *flags, *headers, str(generated), "-o", str(target)], check=True)


def load(name: str = "actors") -> ModuleType:
    """Import a compiled module."""
    target = BUILD / f"{name}{SUFFIX}"
    spec = importlib.util.spec_from_file_location(name, target)
    if spec is None or spec.loader is None:
        raise ImportError(f"{target} is no extension module")
    module = importlib.util.module_from_spec(spec)
    known = sys.modules.get(name)
    spec.loader.exec_module(module)
    # A compiled module enters itself, also where a folder here has the same name: `streams`.
    if known is not None:
        sys.modules[name] = known
    else:
        sys.modules.pop(name, None)
    return module
