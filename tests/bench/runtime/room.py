"""Room: an actor fills a bounded mailbox, whose owner lives on the same worker and asks elsewhere.

The owner waits for a dedicated actor's answer in the middle of each message, so the sender, which
waits for room, has to let its worker take in those answers. `sender` is "actor", or "thread": the
main one, which does not hold the worker up. `measure` is "messages", for their rate, or "asks": the
median time, in microseconds, in which another actor of the worker answers while the sender waits.
"""

from statistics import median
from threading import Event
from time import perf_counter, perf_counter_ns
from typing import Any

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, Future
from savina.result import Quantity, Result

CAPACITY = 16


class Echo(Actor[int]):
    def receive(self, number: int) -> int:
        return number


class Owner(Actor[int]):
    def __init__(self, elsewhere: ActorRef[int]) -> None:
        self.elsewhere = elsewhere
        self.total = 0

    async def receive(self, number: int) -> int:
        self.total += await self.elsewhere.ask(number)
        return self.total


class Away(Actor[int]):
    """Begins when it is let."""

    def __init__(self, begun: Event, let: "Future[None]") -> None:
        self.begun, self.let = begun, let

    async def receive(self, number: int) -> None:
        self.begun.set()
        await self.let


class Sender(Actor[int]):
    def __init__(self, to: ActorRef[int]) -> None:
        self.to = to

    def receive(self, n: int) -> int:
        for _ in range(n):
            self.to.tell(1)
        return n


def run(n: int, *, measure: str = "messages", sender: str = "actor") -> Result | Quantity:
    with ActorSystem(workers=1) as system:
        return asks(system, n) if measure == "asks" else messages(system, n, sender)


def messages(system: ActorSystem, n: int, sender: str) -> Result:
    elsewhere = system.spawn(Echo, dedicated=True)
    owner = system.spawn(Owner, elsewhere, mailbox=BoundedMailbox(CAPACITY))
    begin = perf_counter()
    if sender == "actor":
        system.spawn(Sender, owner).ask(n).result(timeout=120)
    else:
        owner.tell_many([1] * n)
    total = owner.ask(0).result(timeout=120)
    return Result(n, perf_counter() - begin, got=total, want=n)


def asks(system: ActorSystem, n: int) -> Quantity:
    begun, let = Event(), Future[None]()
    away = system.spawn(Away, begun, let, mailbox=BoundedMailbox(CAPACITY))
    away.tell(0)
    begun.wait(60)
    sent: Future[Any] = system.spawn(Sender, away).ask(CAPACITY + 1)
    other = system.spawn(Echo)
    taken, right = [], 0
    for number in range(n):
        begin = perf_counter_ns()
        answer = other.ask(number).result(timeout=60)
        taken.append(perf_counter_ns() - begin)
        right += answer == number
    waiting = not sent.done()
    let.set_result(None)
    sent.result(timeout=60)
    return Quantity(median(taken) / 1e3, got=[right, waiting], want=[n, True])
