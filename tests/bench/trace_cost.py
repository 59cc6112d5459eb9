"""What traces cost: of a million dispatches the time and the file, and of a ping-pong its time.

python tests/bench/trace_cost.py
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from callboard import Actor, ActorRef, ActorSystem
from callboard.scheduling.tracing.formats import PerfettoFormat
from callboard.scheduling.tracing.track_encoder import RECORD_SIZE, take_records

ROUNDS = 5
MILLION = 1_000_000


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


def ping_pong(balls: int, trace: str | None, **options: Any) -> float:
    """Return the seconds that a million messages take, `balls` of them on their way."""
    with ActorSystem(workers=1, trace=trace, **options) as system:
        players = [system.spawn(Player) for _ in range(2)]
        players[0].tell(players[1])
        players[1].tell(players[0])
        system.drain()
        began = time.perf_counter()
        players[0].tell_many([MILLION // balls] * balls)
        system.drain(600)
        return time.perf_counter() - began


def written(folder: Path) -> tuple[float, float]:
    """Return the seconds and the megabytes in which a million records become a file."""
    path = folder / "million.perfetto-trace"
    with ActorSystem(workers=1, quantum=1, monitoring="workers") as system:
        box = system.spawn(Box, name="box")
        box.tell_many([0] * 10_000)
        system.drain()
        (worker,) = system._runtime.team.workers
        records, _, _ = take_records(worker, 0)
        names = system._logs.paths
        made = PerfettoFormat("bench")
        count = len(records) // RECORD_SIZE
        began = time.perf_counter()
        with path.open("wb", buffering=0) as file:
            file.write(made.header())
            for _ in range(-(-MILLION // count)):
                file.write(made.records(worker, records, names))
        return time.perf_counter() - began, path.stat().st_size / 1e6


def main() -> None:
    """Print the figures, medians of some rounds."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        figures = [written(folder) for _ in range(ROUNDS)]
        seconds, megabytes = map(statistics.median, zip(*figures, strict=True))
        print(f"a million dispatches to a file: {seconds:.2f} s, {megabytes:.0f} MB")
        for balls in (1, 2, 8, 64):
            ways: dict[str, dict[str, Any]] = {
                "off": {"trace": None},
                "monitoring": {"trace": None, "monitoring": "workers"},
                "traced": {"trace": str(folder / "run.perfetto-trace")},
                "traced, times": {"trace": str(folder / "run.trace"), "monitoring": "times"},
            }
            times: dict[str, list[float]] = {way: [] for way in ways}
            for _ in range(ROUNDS):
                for way, options in ways.items():
                    times[way].append(ping_pong(balls, **options))
            off = statistics.median(times["off"])
            print(
                f"ping-pong of {balls} balls: {off * 1e9 / MILLION:.0f} ns a message, and", end=" "
            )
            more = {way: statistics.median(each) / off - 1 for way, each in times.items()}
            print(", ".join(f"{way} {share:+.0%}" for way, share in more.items() if way != "off"))


if __name__ == "__main__":
    main()
