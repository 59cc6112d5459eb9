"""Fixtures of the streams' tests."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from callboard import ActorSystem
from tests.streams.witness import Witness


@pytest.fixture
def importable(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    """Let worker processes that start in a test find its module."""
    monkeypatch.syspath_prepend(str(root))


@pytest.fixture(scope="module")
def systems(root: Path) -> Iterator[list[ActorSystem]]:
    """Systems with two worker processes, none, one and three."""
    with pytest.MonkeyPatch.context() as patched, ExitStack() as stack:
        patched.syspath_prepend(str(root))  # where the processes find modules of tests
        yield [stack.enter_context(ActorSystem(processes=count)) for count in (2, 0, 1, 3)]


@pytest.fixture
def witness() -> Witness:
    """Who worked on what."""
    return Witness()
