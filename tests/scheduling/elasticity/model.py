"""A simulated system: its throughput is a function of the level, under a load that may change."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

from callboard.scheduling.elasticity.controller import Strategy
from callboard.scheduling.elasticity.decision import Decision
from callboard.scheduling.elasticity.measurement import Measurement

Capacity = Callable[[int], float]
"""The throughput at a level, if there is always something to do."""


def law(serial: float, mutual: float) -> Capacity:
    """Gunther's universal scalability law."""
    return lambda n: 1000 * n / (1 + serial * (n - 1) + mutual * n * (n - 1))


def plateau(knee: int) -> Capacity:
    return lambda n: 1000.0 * min(n, knee)


def peak(knee: int, fall: float) -> Capacity:
    return lambda n: 1000.0 * min(n, knee) * (knee / max(n, knee)) ** fall


def lock(knee: int, cost: float) -> Capacity:
    """Workers beyond the knee only wait for a lock, and each of them delays the others."""
    return lambda n: 1000.0 * min(n, knee) / (1 + cost * max(0, n - knee))


def jump(at: int) -> Capacity:
    return lambda n: 1000.0 if n < at else 2000.0


SHAPES: dict[str, Capacity] = {
    "in parallel: 64 of 64": law(0, 0),
    "1,000 wide, cost 1: 1": law(0.3, 0.3),
    "falls slowly: 1": lambda n: 1000 / n**0.5,
    "as much at each level": lambda n: 1000.0,
    "plateau from 3": plateau(3),
    "plateau from 10": plateau(10),
    "plateau from 40": plateau(40),
    "peak at 2": peak(2, 1),
    "peak at 8": peak(8, 1),
    "flat peak at 8": peak(8, 0.5),
    "peak at 20": peak(20, 1),
    "peak at 40": peak(40, 1),
    "a lock: 8 of 64": lock(8, 0.1),
    "law, 9 of 64": law(0.02, 0.012),
    "law, 15 of 64": law(0.3, 0.003),
    "law, 31 of 64": law(0.05, 0.001),
    "law, 10% serial": law(0.1, 0),
    "jump at 4": jump(4),
    "jump at 16": jump(16),
}


@dataclass
class System:
    """A system with a strategy, period by period; saturated where nothing is `offered`.

    Its workers are busy for `busy_part` of the time at most: else they wait for each other.
    """

    strategy: Strategy
    capacity: Capacity
    level: int = 1
    offered: float | None = None
    noise: Callable[[], float] = lambda: 1.0
    seconds: float = 1.0
    waiting: float = 0.0
    busy_part: float = 1.0
    levels: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)

    def measure(self) -> Measurement:
        able = self.capacity(self.level)
        if self.offered is None:
            did, busy = able, self.busy_part * self.level
        else:
            wanted = self.offered + self.waiting / self.seconds
            did = min(able, wanted)
            self.waiting = (wanted - did) * self.seconds
            busy = self.level * did / able
        return Measurement(
            level=self.level,
            seconds=self.seconds,
            throughput=did * self.noise(),
            busy=min(float(self.level), busy * self.noise()),
            waiting=self.waiting,
            held_back=float(self.offered is None),
        )

    def period(self) -> Decision:
        decision = self.strategy.decide(self.measure())
        self.level = decision.level
        self.levels.append(decision.level)
        self.reasons.append(decision.reason)
        return decision

    def run(self, periods: int) -> "System":
        for _ in range(periods):
            self.period()
        return self

    def share(self, most: int) -> float:
        """Return which part of the best level's throughput this level has."""
        return self.capacity(self.level) / max(map(self.capacity, range(1, most + 1)))


def uniform(random: Random, part: float) -> Callable[[], float]:
    """Multiplicative noise of up to `part`."""
    return lambda: random.uniform(1 - part, 1 + part)


def changes(levels: Sequence[int]) -> int:
    return sum(1 for before, after in itertools.pairwise(levels) if before != after)
