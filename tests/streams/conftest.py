"""What the tests of streams share."""

import pytest

from tests.streams.witness import Witness


@pytest.fixture
def witness() -> Witness:
    """Who worked on what."""
    return Witness()
