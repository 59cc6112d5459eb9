"""The first rounds of a run with worker processes are measured before many others follow."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from callboard import ActorSystem
from callboard.core.threads.interpreter import has_gil
from callboard.streams import entry
from callboard.streams.running.waiting import Waiting


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of rounds that were waited for."""
    targets: list[int] = []
    monkeypatch.setattr(Waiting, "until", lambda waiting, rounds, *_: targets.append(rounds))
    return targets


def waiting(done: int, admitted: int) -> Waiting:
    made = Waiting.__new__(Waiting)
    made._flow = SimpleNamespace(done=done, admitted=admitted)  # type: ignore[assignment]
    return made


def test_a_sender_waits_if_many_first_rounds_are_on_their_way(waits: list[int]) -> None:
    assert waiting(done=0, admitted=31).for_first_rounds(32, None)
    assert waits == []
    assert waiting(done=0, admitted=32).for_first_rounds(32, None)
    assert waiting(done=20, admitted=60).for_first_rounds(32, None)
    assert waits == [16, 44]
    assert not waiting(done=64, admitted=300).for_first_rounds(32, None)
    assert waits == [16, 44]


def test_an_event_loop_does_not_wait_for_first_rounds(waits: list[int]) -> None:
    async def ask() -> bool:
        return waiting(done=0, admitted=100).for_first_rounds(32, None)

    assert not asyncio.run(ask())
    assert waits == []


@pytest.mark.skipif(not has_gil(), reason="threads run Python side by side here")
@pytest.mark.parametrize("batch_size", [None, 8])
def test_rounds_of_a_given_size_are_not_measured(
    monkeypatch: pytest.MonkeyPatch, batch_size: int | None
) -> None:
    asked: list[int] = []
    monkeypatch.setattr(
        Waiting, "for_first_rounds", lambda waiting, lead, deadline: asked.append(lead)
    )
    with ActorSystem(processes=1) as system:
        run = system.run(entry("rows", int).map(abs).collect(), batch_size=batch_size)
        run.send("rows", range(1000))
        assert run.finish(timeout=60) == [*range(1000)]
    assert len(asked) == (batch_size is None)
