"""Every header compiles alone, so it can be included first."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest

from tests.sources import sources

ROOT = Path(__file__).parents[1]
HEADERS = {
    str(path.relative_to("actors") if path.parts[0] == "actors" else path): ROOT / path
    for path in sources(ROOT)
    if path.suffix == ".hpp"
}  # by the path after `callboard/` in an include


@pytest.fixture(scope="module")
def includes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the headers as they are installed."""
    folder = tmp_path_factory.mktemp("includes")
    for place, source in HEADERS.items():
        (folder / "callboard" / place).parent.mkdir(parents=True, exist_ok=True)
        (folder / "callboard" / place).symlink_to(source)
    return folder


@pytest.mark.parametrize("header", HEADERS)
def test_a_header_compiles_alone(header: str, includes: Path, tmp_path: Path) -> None:
    compiler = os.environ.get("CXX") or shutil.which("c++") or pytest.skip("no C++ compiler")
    program = tmp_path / "header.cpp"
    program.write_text(f'#include "callboard/{header}"\n')
    options = ["-std=c++17", "-fsyntax-only", "-Wall", "-Wextra", "-Werror"]
    folders = [f"-I{includes}", f"-I{sysconfig.get_path('include')}"]
    subprocess.run([compiler, *options, *folders, program], check=True)
