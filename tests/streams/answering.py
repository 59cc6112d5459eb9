"""Actors and coroutines whose answers are outputs of streams."""

from __future__ import annotations

import asyncio
from typing import Any

from callboard import Actor, Future
from callboard.streams import entry

rows = entry("rows")
ROWS = list(range(500))


class Doubling(Actor[int]):
    """Answers at once."""

    def receive(self, message: int) -> int:
        return message * 2


class Holding(Actor[Any]):
    """Answers when it is told to, the latest first; or one row, as told by a tuple of it."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Future[int]]] = []
        self.most = 0

    def receive(self, message: Any) -> Any:
        if message == "most":
            return self.most
        if message == "asked":
            return [row for row, _ in self.asked]
        if isinstance(message, tuple):
            for entry in list(self.asked):
                if entry[0] in message:
                    self.answer(entry)
            return None
        if message == "answer":
            while self.asked:
                self.answer(self.asked[-1])
            return None
        answer: Future[int] = Future()
        self.asked.append((message, answer))
        self.most = max(self.most, len(self.asked))
        return answer

    def answer(self, entry: tuple[int, Future[int]]) -> None:
        self.asked.remove(entry)
        row, future = entry
        future.set_result(row * 2)


async def double(row: int) -> int:
    await asyncio.sleep(0)
    return row * 2
