"""Fixtures of tests of runs: systems of one worker and of two, and their dead letters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from callboard import ActorSystem, DeadLetter


@pytest.fixture(params=[1, 2], ids=["one worker", "two workers"])
def system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    made = ActorSystem(workers=request.param)
    yield made
    made.stop()


@pytest.fixture
def letters(system: ActorSystem) -> list[DeadLetter]:
    """The dead letters of the system so far."""
    found: list[DeadLetter] = []
    system.dead_letters.subscribe(found.append)
    return found
