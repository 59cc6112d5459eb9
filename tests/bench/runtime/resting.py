"""Asks with pauses between them: how long each takes, for callboard and for threads with queues.

A pause lets all threads sleep, so the asks after it wake them. `pauses` are microseconds that the
asker sleeps between two bursts of `burst` asks, drawn evenly from those given.

Three shapes, the same for both: one thread asks one echo; several threads ask the same echo, each
at its own times; or one thread asks a chain, an `async` actor that asks another before it answers
(threads with a queue each). What is asked is answered by one more at each link.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import chain
from queue import SimpleQueue
from threading import Thread
from time import perf_counter_ns, sleep
from typing import Any

from callboard import Actor, ActorRef, ActorSystem

WARM_UP = 20  # asks that are not measured
PATIENCE = 60.0  # seconds; a lost answer ends a run with an error, not with a hang

Ask = Callable[[int], int]
# Gives each asking thread its way to ask.
Answering = Callable[[], Ask]


@dataclass(frozen=True)
class Latencies:
    """The nanoseconds of every ask; wrong unless `got` equals `want`."""

    nanoseconds: list[int]
    got: Any
    want: Any


class Echo(Actor[int]):
    def receive(self, number: int) -> int:
        return number + 1


class Link(Actor[int]):
    """Asks the next before it answers."""

    def __init__(self, following: ActorRef[int]) -> None:
        self.following = following

    async def receive(self, number: int) -> int:
        answer: int = await self.following.ask(number)
        return answer + 1


@contextmanager
def callboard(links: int, workers: int, timeout: float | None) -> Iterator[Answering]:
    with ActorSystem(workers=workers) as system:
        ref = system.spawn(Echo)
        for _ in range(links - 1):
            ref = system.spawn(Link, ref)
        ask = ref.ask
        if timeout is None:
            yield lambda: lambda number: ask(number).result(PATIENCE)
        else:
            yield lambda: lambda number: ask(number, timeout=timeout).result()


class Server:
    """A thread that answers what comes by its queue, after it has asked the next server, if any."""

    def __init__(self, following: "Server | None") -> None:
        self.questions: SimpleQueue[Any] = SimpleQueue()
        self.asking = following.asker() if following else None
        Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        get, asking = self.questions.get, self.asking
        while (question := get()) is not None:
            answer, number = question
            answer((asking(number) if asking else number) + 1)

    def asker(self) -> Ask:
        answers: SimpleQueue[int] = SimpleQueue()
        put, get, answer = self.questions.put, answers.get, answers.put

        def ask(number: int) -> int:
            put((answer, number))
            return get()

        return ask


@contextmanager
def queues(links: int, workers: int, timeout: float | None) -> Iterator[Answering]:
    server = None
    servers = [server := Server(server) for _ in range(links)]
    yield servers[-1].asker
    for server in servers:
        server.questions.put(None)


BY: dict[str, Callable[..., AbstractContextManager[Answering]]] = {
    "callboard": callboard,
    "queues": queues,
}


def run(
    n: int,
    *,
    by: str = "callboard",
    pauses: tuple[int, ...] = (0,),
    burst: int = 1,
    askers: int = 1,
    links: int = 1,
    workers: int = 1,
    timeout: float | None = None,
) -> Latencies:
    with BY[by](links, workers, timeout) as answering:
        taken: list[list[int]] = [[] for _ in range(askers)]
        answers = [0] * askers

        def play(asker: int) -> None:
            answers[asker] = ask_and_pause(answering(), n, pauses, burst, asker, taken[asker])

        threads = [Thread(target=play, args=(asker,)) for asker in range(1, askers)]
        for thread in threads:
            thread.start()
        play(0)
        for thread in threads:
            thread.join()
    want = links * (n + WARM_UP)
    return Latencies(list(chain(*taken)), got=answers, want=[want] * askers)


def ask_and_pause(
    ask: Ask, n: int, pauses: tuple[int, ...], burst: int, seed: int, taken: list[int]
) -> int:
    answer = 0
    for _ in range(WARM_UP):
        answer = ask(answer)
    choose = random.Random(seed).choice
    for number in range(n):
        if number % burst == 0 and (pause := choose(pauses)):
            sleep(pause / 1e6)
        begin = perf_counter_ns()
        answer = ask(answer)
        taken.append(perf_counter_ns() - begin)
    return answer
