"""Actors whose messages wait until a test lets them continue."""

from typing import Any

import pytest

from callboard import Actor, Future
from tests.remote.conftest import eventually

on_both_hosts = pytest.mark.parametrize("event_loop", [False, True])


class Gates(Actor[int]):
    """Waits at each message's gate, and notes what begins and ends."""

    def __init__(self, gates: "list[Future[Any]]", notes: list[str]) -> None:
        self.gates, self.notes = gates, notes

    async def receive(self, message: int) -> Any:
        self.notes.append(f"begin {message}")
        try:
            answer = await self.gates[message]
        except BaseException as error:
            self.notes.append(f"{type(error).__name__} at {message}")
            raise
        self.notes.append(f"end {message}")
        return answer

    def on_failure(self, error: BaseException, message: Any) -> None:
        self.notes.append(f"failed at {message}")

    def on_stop(self) -> None:
        self.notes.append("stopped")


def gates(count: int) -> "list[Future[Any]]":
    return [Future() for _ in range(count)]


def until(notes: list[str], length: int) -> None:
    """Wait until this many notes are there."""
    eventually(lambda: len(notes) >= length, f"{length} notes")
