"""How long to look for a counterexample: `--hypothesis-profile=thorough` for a long hunt."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The tests here import each other's helpers.
sys.path.insert(0, str(Path(__file__).parent))

settings.register_profile(
    "ci",
    max_examples=50,
    stateful_step_count=30,
    deadline=None,  # threads are as quick as the machine lets them
    suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=3_000)


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--hypothesis-profile", None):
        settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """Log no failures: the programs fail on purpose, thousands of times."""
    log = logging.getLogger("callboard")
    level = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(level)
