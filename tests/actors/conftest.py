"""A system for each test of the actors, with one worker and with two."""

from collections.abc import Iterator

import pytest

from callboard import ActorSystem


@pytest.fixture(params=[1, 2], ids=["1-worker", "2-workers"])
def system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    """A system that the test leaves at rest, or its drain says why not."""
    with ActorSystem(workers=request.param) as system:
        yield system
