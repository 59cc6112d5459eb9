"""Actors that compute: each sends a message to itself, again and again.

Native ones are `natives/actors.pyx`; those in Python want a build without an interpreter lock. All
that was sent must have been handled.
"""

from time import perf_counter, sleep
from typing import Any

from callboard import Actor, ActorSystem
from elastic.levels import settling, system_of
from elastic.throughput import LAST
from savina.result import Result
from usage import Watch

AGAIN, STOP, HANDLED, SENT = 1, 0, -1, -2  # messages; the last two are asked
PATIENCE = 60.0  # seconds


class Computing(Actor[int]):
    """Multiply `flops` times for each message."""

    def __init__(self, flops: int) -> None:
        self.flops = flops
        self.handled = self.sent = 0
        self.going = True

    def receive(self, message: int) -> int | None:
        if message < STOP:
            return self.sent if message == SENT else self.handled
        self.handled += 1
        value = 1.0
        for _ in range(self.flops):
            value *= 1.0000001
        self.going = self.going and message == AGAIN
        if self.going:
            self.sent += 1
            self.ref.tell(AGAIN)
        return None


def run(
    n: int,
    *,
    kind: str = "native",
    actors: int = 16,
    flops: int = 1_000,
    workers: int = 1,
    strategy: str = "",
    period: float = 0.2,
) -> Result:
    """Let so many actors compute for n periods; the messages of the last ones count."""
    cls: type[Any] = Computing
    if kind == "native":
        from natives import load

        cls = load("actors").Computing
    made = perf_counter()
    with system_of(workers, strategy, period) as system:
        refs = [system.spawn(cls, flops) for _ in range(actors)]
        begin = perf_counter()
        for ref in refs:
            ref.tell(AGAIN)
        sleep(max(0, n - LAST) * period)
        watch, before = Watch(), total(system, refs, HANDLED)
        sleep(min(n, LAST) * period)
        used, done = watch.stop(), total(system, refs, HANDLED) - before
        level = system.statistics().level if strategy else None
        found = settling(level, begin - made, period)
        for ref in refs:
            ref.tell(STOP)
        system.drain(PATIENCE)
        got = total(system, refs, HANDLED)
        want = total(system, refs, SENT) + 2 * actors
    return Result(max(1, done), got=got, want=want, **used, **found)


def total(system: ActorSystem, refs: list[Any], what: int) -> int:
    """Ask all actors, and add their answers."""
    asked = [ref.ask(what) for ref in refs]
    return sum(answer.result(PATIENCE) for answer in asked)
