"""Actors that handle a message for a given time, for tests that cancel."""

import asyncio
from typing import Any

import pytest

from callboard import Actor, ActorSystem, DeadLetter

hosts = pytest.mark.parametrize("event_loop", [False, True], ids=["worker", "event loop"])


class Napping(Actor[Any]):
    """Sleeps for as long as it is told, and notes how its messages end."""

    def __init__(self, log: list[Any]) -> None:
        self.log = log

    async def receive(self, message: Any) -> Any:
        self.log.append(("begun", message))
        try:
            await self.sleep(message)
        except asyncio.CancelledError:
            self.log.append(("cancelled", message, self.is_wanted()))
            raise
        self.log.append(("ended", message))
        return message


def letters_of(system: ActorSystem) -> list[DeadLetter]:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    return letters
