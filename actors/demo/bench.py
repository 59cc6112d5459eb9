"""`callboard bench`: measures how fast this machine runs actors and streams, in a few seconds."""

from __future__ import annotations

import argparse
import os
import platform
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from callboard.actor import Actor
from callboard.core.threads.interpreter import has_gil
from callboard.frequency import FrequencyActors
from callboard.streams import entry
from callboard.system import ActorSystem

ROUND = 20_000
"""Messages, or rows, of a round; there are as many rounds as fit into the time."""
LONGEST = 60.0  # seconds for a round


class Player(Actor[Any]):
    """Gets numbers, and sends another player the next lower one."""

    def __init__(self) -> None:
        self.other: Any = None
        self.over = threading.Event()
        self.count = 0

    def receive(self, message: Any) -> Any:
        """Count a number; be told of the other player; or answer what was counted."""
        if type(message) is int:
            self.count += 1
            if message:
                self.other.tell(message - 1)
            else:
                self.over.set()
        elif message is None:
            return self.count
        else:
            self.other, self.over = message
        return None


def main(arguments: Sequence[str]) -> int:
    """Measure this machine for some seconds: messages and rows a second. Each result is checked,
    and the exit status is 1 if one is wrong. For a look, not for comparisons: the time is short.
    """
    parser = argparse.ArgumentParser(prog="callboard bench", description=main.__doc__)
    parser.add_argument("--seconds", type=float, default=1.0, help="for each measurement (1)")
    seconds = parser.parse_args(arguments).seconds
    if not 0 <= seconds <= 3600:
        parser.error(f"--seconds must be from 0 to 3600, got {seconds}")
    lock = "with an interpreter lock" if has_gil() else "without an interpreter lock"
    print(f"{os.cpu_count()} processors, Python {platform.python_version()} {lock}")
    right = True
    for title, unit, measure in _MEASUREMENTS:
        count, took, is_right = measure(seconds)
        verdict = "" if is_right else "  wrong result"
        print(f"{title:<40} {count / took:>12,.0f} {unit}/s{verdict}", flush=True)
        right = right and is_right
    return 0 if right else 1


Measured = tuple[int, float, bool]  # how many, in how many seconds, whether the result is right


def _python_actors(seconds: float) -> Measured:
    with ActorSystem(workers=1) as system:
        one, other = system.spawn(Player), system.spawn(Player)
        over = threading.Event()
        one.tell((other, over))
        other.tell((one, over))

        def play() -> None:
            over.clear()
            one.tell(ROUND - 1)
            if not over.wait(LONGEST):
                raise TimeoutError(f"{ROUND} messages took more than {LONGEST:g} s")

        rounds, took = _repeated(play, seconds)
        counted = one.ask(None).result(LONGEST) + other.ask(None).result(LONGEST)
    return rounds * ROUND, took, counted == rounds * ROUND


def _native_actor(seconds: float) -> Measured:
    with ActorSystem(workers=1) as system:
        actors = FrequencyActors(system, 0.01, streams=1)
        (ref,) = actors.refs

        def count() -> None:
            for number in range(ROUND):
                ref.tell(number % 10)
            system.drain(LONGEST)

        rounds, took = _repeated(count, seconds)
        counted = actors.summary.estimate(7).count
    return rounds * ROUND, took, counted == rounds * ROUND // 10


def _stream(seconds: float) -> Measured:
    graph = entry("rows").map(lambda row: row + 1).filter(lambda row: row % 2).collect()
    rows = range(ROUND)
    outputs = [row + 1 for row in rows if (row + 1) % 2]
    right = True
    with ActorSystem() as system:

        def go_through() -> None:
            nonlocal right
            run = system.run(graph)
            run.send("rows", rows)
            right = run.finish(LONGEST) == outputs and right

        rounds, took = _repeated(go_through, seconds)
    return rounds * ROUND, took, right


def _repeated(round_of: Callable[[], None], seconds: float) -> tuple[int, float]:
    """Return how many rounds there were, and the seconds that they took. One is not counted."""
    round_of()
    begun = time.perf_counter()
    rounds = 0
    while rounds == 0 or time.perf_counter() - begun < seconds:
        round_of()
        rounds += 1
    return rounds + 1, (time.perf_counter() - begun) * (rounds + 1) / rounds


_MEASUREMENTS: tuple[tuple[str, str, Callable[[float], Measured]], ...] = (
    ("messages between two Python actors", "messages", _python_actors),
    ("messages to a native actor", "messages", _native_actor),
    ("rows through two Python functions", "rows", _stream),
)
