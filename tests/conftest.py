"""What all tests share."""

import json
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root."""
    return Path(__file__).parent.parent


@pytest.fixture(scope="session")
def wheel() -> Distribution:
    """The installed distribution, if it came from a wheel."""
    installed = distribution("callboard")
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if origin.get("dir_info", {}).get("editable"):
        pytest.skip("callboard is installed in editable mode, so there is no wheel to look into")
    return installed
