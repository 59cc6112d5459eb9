"""A system for each test of the actors, with one worker and with two."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from callboard import ActorSystem

# The tests here import each other's helpers.
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(params=[1, 2], ids=["1-worker", "2-workers"])
def system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    """A system that the test leaves at rest, or its drain says why not."""
    with ActorSystem(workers=request.param) as system:
        yield system
