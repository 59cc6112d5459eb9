"""A stream asks an actor n times, 64 at a time; each answer takes a millisecond's sleep.

`way` is "stream", by `ask(ref, in_flight=64)`; "by hand", where the main program asks, and takes the
answers in the order of its questions; or "tasks", plain tasks of asyncio behind a semaphore. The
ideal is 64 answers in each millisecond.
"""

import asyncio
from collections import deque
from time import perf_counter

from callboard import Actor, ActorRef, ActorSystem
from callboard.streams import entry
from savina.result import Result

AT_A_TIME = 64
SLEEP = 0.001


class Answering(Actor[int, int]):
    async def receive(self, number: int) -> int:
        await self.sleep(SLEEP)
        return number + 1


def run(n: int, *, way: str = "stream") -> Result:
    if way == "tasks":
        return asyncio.run(tasks(n))
    with ActorSystem(workers=1) as system:
        answering = system.spawn(Answering, concurrency=AT_A_TIME)
        answering.ask(0).result(timeout=60)
        begin = perf_counter()
        got = by_stream(system, answering, n) if way == "stream" else by_hand(answering, n)
        seconds = perf_counter() - begin
    return Result(n, seconds, got=got == [*range(1, n + 1)], want=True)


def by_stream(system: ActorSystem, answering: ActorRef[int, int], n: int) -> list[int]:
    run = system.run(entry("rows", int).ask(answering, in_flight=AT_A_TIME).collect())
    run.send("rows", range(n))
    got: list[int] = run.finish(timeout=600)
    return got


def by_hand(answering: ActorRef[int, int], n: int) -> list[int]:
    got = []
    asked = deque(answering.ask(number) for number in range(min(n, AT_A_TIME)))
    for number in range(AT_A_TIME, n + AT_A_TIME):
        if asked:
            got.append(asked.popleft().result(timeout=600))
        if number < n:
            asked.append(answering.ask(number))
    return got


async def tasks(n: int) -> Result:
    room = asyncio.Semaphore(AT_A_TIME)

    async def work(number: int) -> int:
        try:
            await asyncio.sleep(SLEEP)
            return number + 1
        finally:
            room.release()

    begin = perf_counter()
    made = []
    for number in range(n):
        await room.acquire()
        made.append(asyncio.create_task(work(number)))
    got = [await task for task in made]
    return Result(n, perf_counter() - begin, got=got == [*range(1, n + 1)], want=True)
