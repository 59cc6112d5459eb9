"""The cost of traces: the time and the file of a million dispatches, and the time of a ping-pong.

python tests/bench/trace_cost.py
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from callboard import Actor, ActorRef, ActorSystem
from callboard.scheduling.tracing.formats import PerfettoFormat
from callboard.scheduling.tracing.track_encoder import RECORD_SIZE, take_records

ROUNDS = 5
MILLION = 1_000_000
MESSAGES = 400_000


class Box(Actor[int]):
    def receive(self, message: int) -> None:
        pass


class Player(Actor[Any]):
    """Passes a number of balls on."""

    def __init__(self) -> None:
        self.partner: ActorRef[Any] | None = None

    def receive(self, message: Any) -> None:
        if self.partner is None:
            self.partner = message
        elif message:
            self.partner.tell(message - 1)


def ping_pong(balls: int, **options: Any) -> float:
    """Return the processor time that a message takes, `balls` of them on their way, in ns."""
    with ActorSystem(workers=1, **options) as system:
        players = [system.spawn(Player) for _ in range(2)]
        players[0].tell(players[1])
        players[1].tell(players[0])
        system.drain()
        began = time.process_time()
        players[0].tell_many([MESSAGES // balls] * balls)
        system.drain(600)
        return (time.process_time() - began) * 1e9 / MESSAGES


def written(folder: Path, level: str) -> tuple[float, float]:
    """Return the seconds and the megabytes in which a million records become a file."""
    path = folder / "million.perfetto-trace"
    with ActorSystem(workers=1, quantum=1, monitoring=level) as system:
        box = system.spawn(Box, name="box")
        box.tell_many([0] * 10_000)
        system.drain()
        (worker,) = system._runtime.team.workers
        records, _, _ = take_records(worker, 0)
        names = system._observer.records.paths
        count = len(records) // RECORD_SIZE
        began = time.process_time()
        with path.open("wb", buffering=0) as file:
            for _ in range(-(-MILLION // count)):
                made = PerfettoFormat("bench")  # its time goes forward
                file.write(made.header())
                file.write(made.records(worker, records, names))
        return time.process_time() - began, path.stat().st_size / 1e6


def main() -> None:
    """Print the figures: the least of some rounds, as what other programs do can only add to it."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        for level in ("times", "mailboxes"):
            seconds, megabytes = min(written(folder, level) for _ in range(ROUNDS))
            print(f"a million dispatches at level {level}: {seconds:.2f} s, {megabytes:.0f} MB")
        for balls in (1, 4, 16, 128):
            ways: dict[str, dict[str, Any]] = {"off": {}}
            for level in ("times", "workers"):
                ways[level] = {"monitoring": level}
                ways[f"traced, {level}"] = ways[level] | {"trace": str(folder / "run.trace")}
            rounds = [{way: ping_pong(balls, **ways[way]) for way in ways} for _ in range(ROUNDS)]
            times = {way: min(one[way] for one in rounds) for way in ways}
            off = times["off"]
            print(f"ping-pong of {balls} balls: {off:.0f} ns a message;", end=" ")
            print(", ".join(f"{way} {each / off - 1:+.0%}" for way, each in times.items()))


if __name__ == "__main__":
    main()
