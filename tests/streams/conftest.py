"""Fixtures of the streams' tests."""

import pytest

from tests.streams.witness import Witness


@pytest.fixture
def witness() -> Witness:
    """Who worked on what."""
    return Witness()
