"""A private folder of sockets for a test."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from callboard.observing import endpoint


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir="/tmp") as above:  # short, as a socket's path has to be
        monkeypatch.setenv("XDG_RUNTIME_DIR", above)
        monkeypatch.setattr(endpoint, "BRIEF_PATIENCE", 60.0)
        yield Path(above) / f"callboard-{os.geteuid()}"
