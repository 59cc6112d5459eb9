"""What the tests of random programs share."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# The tests here import each other's helpers.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """Log no failures: the programs fail on purpose, thousands of times."""
    log = logging.getLogger("callboard")
    level = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(level)
