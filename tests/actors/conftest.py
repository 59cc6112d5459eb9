"""Fixtures and helpers of the actors' tests."""

import logging
from collections.abc import Iterator

import pytest

from callboard import ActorSystem


@pytest.fixture(params=[1, 2], ids=["1-worker", "2-workers"])
def system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    """A system that the test leaves idle, or its drain says why not."""
    with ActorSystem(workers=request.param) as system:
        yield system


@pytest.fixture(scope="module")
def quiet() -> Iterator[None]:
    """Log no failures: random programs fail on purpose, thousands of times."""
    log = logging.getLogger("callboard")
    level = log.level
    log.setLevel(logging.CRITICAL)
    yield
    log.setLevel(level)
