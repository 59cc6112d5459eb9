"""Actors for the tests of the event loop: one calls async functions, one is of plain Python."""

import asyncio
from typing import Any

from callboard import Actor


class Doubler(Actor[int]):
    def receive(self, message: int) -> int:
        return message * 2


class Caller(Actor[Any]):
    """Calls what it is sent, an async function, with itself."""

    async def receive(self, message: Any) -> Any:
        return await message(self)


async def slept(actor: Caller) -> Any:
    return await asyncio.sleep(0.001, "awake")
