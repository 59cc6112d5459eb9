"""A folder of sockets that a test has for itself."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as above:  # short, as a socket's path has to be
        monkeypatch.setenv("XDG_RUNTIME_DIR", above)
        yield Path(above) / f"callboard-{os.geteuid()}"
