"""Fixtures of the channels' tests."""

from collections.abc import Iterator

import pytest

from callboard import ActorSystem
from callboard.testing import ManualSystem
from tests.channels.users import Users


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    """A system that the test leaves idle, or its drain says why not."""
    with ActorSystem() as system:
        yield system


@pytest.fixture
def users(system: ActorSystem) -> Users:
    return Users(system)


@pytest.fixture
def manual() -> Iterator[ManualSystem]:
    """A system that the test steps through."""
    with ManualSystem() as system:
        yield system
        system.stop()
