"""Concurrency: n messages of a millisecond's sleep each, 100 of them at a time.

`way` is "actor", one with `concurrency=100` on the event loop; "tasks", a plain task of asyncio for
each message behind a semaphore of 100; or "in turns", an actor that has one at a time.
"""

import asyncio
from time import perf_counter
from typing import Any

from callboard import Actor, ActorSystem
from savina.result import Result

AT_A_TIME = 100
SLEEP = 0.001


class Sums(Actor[int]):
    def __init__(self) -> None:
        self.total = 0

    async def receive(self, number: int) -> int:
        if number:
            await asyncio.sleep(SLEEP)
        self.total += number
        return self.total


def run(n: int, *, way: str = "actor") -> Result:
    if way == "tasks":
        return asyncio.run(tasks(n))
    options: dict[str, Any] = {"concurrency": AT_A_TIME} if way == "actor" else {}
    with ActorSystem(workers=1) as system:
        sums = system.spawn(Sums, event_loop=True, **options)
        sums.ask(0).result(timeout=60)
        begin = perf_counter()
        sums.tell_many([1] * n)
        system.drain(120)
        seconds = perf_counter() - begin
        total = sums.ask(0).result(timeout=60)
    return Result(n, seconds, got=total, want=n)


async def tasks(n: int) -> Result:
    total = 0
    room = asyncio.Semaphore(AT_A_TIME)

    async def work(number: int) -> None:
        nonlocal total
        try:
            await asyncio.sleep(SLEEP)
            total += number
        finally:
            room.release()

    begin = perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(n):
            await room.acquire()
            group.create_task(work(1))
    return Result(n, perf_counter() - begin, got=total, want=n)
