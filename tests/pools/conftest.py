"""A fixture by which the processes of pools can import the actors of these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from callboard import ActorSystem, DeadLetter

LIMIT = 60


@pytest.fixture(autouse=True)
def _importable(monkeypatch: pytest.MonkeyPatch, root: Path) -> None:
    monkeypatch.syspath_prepend(str(root))


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem() as system:
        yield system


def letters(system: ActorSystem) -> list[DeadLetter]:
    found: list[DeadLetter] = []
    system.dead_letters.subscribe(found.append)
    return found
