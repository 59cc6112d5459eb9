"""Type checkers run on a program, and their messages."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest


def by_mypy(folder: Path) -> dict[int, str]:
    """Return mypy's messages for each line of program.py, without the names of modules."""
    pytest.importorskip("mypy")
    command = [sys.executable, "-m", "mypy", "--strict", "--no-incremental", "program.py"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), done.stderr
    if "import-not-found" in done.stdout:
        pytest.skip("mypy does not see an editable install without MYPYPATH")
    said: dict[int, str] = {}
    for line in done.stdout.splitlines():
        if match := re.match(r"program\.py:(\d+): (?:note|error): (.*)", line):
            number = int(match[1])
            text = re.sub(r"(?:builtins|callboard[\w.]*)[.]", "", match[2])
            said[number] = f"{said.get(number, '')}{text}\n"
    return said
