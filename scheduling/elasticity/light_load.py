"""A light load leaves workers idle: the level follows from the number of busy ones."""

from __future__ import annotations

import math

from callboard.scheduling.elasticity.decision import Decision, are, number, rate, workers
from callboard.scheduling.elasticity.level_bounds import LevelBounds
from callboard.scheduling.elasticity.measurement import (
    GROWS,
    NOISE,
    SATURATED,
    Measurement,
    Steady,
    demand,
    growth,
    works_off,
)

LOW, AIM, HIGH = 0.5, 0.65, 0.8
"""Parts of the workers that are busy: the level falls below LOW and rises above HIGH, to AIM."""
_HIGH_AT_FIRST = 0.72
"""The `HIGH` of a level that was not computed for the load, and of one worker less."""
_ALIKE = 0.8
_LEAST_MOVE = 0.1
"""A negligible number of busy workers: the noise of an idle system."""
_MOST_FAILURES = 16


def workers_for(busy: float) -> int:
    """Return the level for this number of busy workers, with some in reserve."""
    return max(1, math.ceil(busy / AIM))


def is_behind(now: Measurement, before: Measurement | None) -> bool:
    """Tell whether the backlog grows although enough workers are awake."""
    return now.busy > LOW * now.level and growth(now, before) > GROWS


class LightLoad:
    """Finds the levels of successive light loads."""

    def __init__(self, bounds: LevelBounds) -> None:
        self._bounds = bounds
        self._busy: list[float] = []  # of the periods of the present load
        self._computed = False  # the level was computed for the load
        self._steady: Steady | None = None  # once the level is kept
        self._lowered: tuple[int, float] | None = None  # the level before, and its throughput
        # Levels, and the throughputs that they did not reach.
        self._failures: list[tuple[int, float]] = []

    def begin(self) -> None:
        """Begin with another load, at a level that was found while the load was full."""
        self._busy, self._computed, self._steady = [], True, None

    def keeps(self, now: Measurement, before: Measurement | None) -> Decision | None:
        """Keep the level until the load moves, or needs and may have more workers.

        So noise does not end a load that nearly fills the workers of the highest level.
        """
        if self._steady is None:
            return None
        moved = self._steady.moved(now.busy, _LEAST_MOVE)
        wants = demand(now) >= SATURATED * now.level or is_behind(now, before)
        if not moved and not (wants and self._bounds.highest(now)[0] > now.level):
            return Decision(now.level, f"{_enough(now.level, now)}.")
        self._busy, self._computed, self._steady = moved[:-1], False, None
        return None

    def decide(self, now: Measurement, before: Measurement | None) -> Decision:
        """Return the level of the next period, if no level is kept."""
        level, enough = now.level, f"{_enough(now.level, now)}."
        if works_off(now, before) is not None:
            return Decision(level, f"{enough} {number(now.waiting)} still wait.")
        self._busy.append(now.busy)
        if len(self._busy) < 2:
            return Decision(level, f"{enough} The next period is to confirm it.")
        return self._compute(now, max(self._busy[-2:]))

    def _compute(self, now: Measurement, busy: float) -> Decision:
        level, target = now.level, self._bounds.clipped(workers_for(busy))
        high = HIGH if self._computed else _HIGH_AT_FIRST
        if busy > high * level and target > level:
            highest, why = self._bounds.highest(now)
            if highest > level:
                return self._moved_to(
                    min(target, highest),
                    f"{workers(level)} {are(level)} nearly too few: {_load(now)}.",
                )
            return self._kept(level, f"{_enough(level, now)}, and {why}.")
        if busy <= _HIGH_AT_FIRST * (level - 1):
            target = min(
                target, level - 1
            )  # with few workers, `AIM` keeps more than one in reserve
        failed = [n for n, load in self._failures if now.throughput > _ALIKE * load]
        target = max([target, *(n + 1 for n in failed)])
        if busy >= LOW * level or target >= level:
            return self._kept(level, f"{_enough(level, now)}.")
        self._lowered = level, now.throughput
        return self._moved_to(target, f"{target} of {_enough(level, now, target)}.")

    def _moved_to(self, level: int, reason: str) -> Decision:
        self._busy, self._computed = [], True
        return Decision(level, reason)

    def _kept(self, level: int, reason: str) -> Decision:
        self._steady, self._lowered = Steady(), None
        return Decision(level, reason)

    def revert(self, now: Measurement, before: Measurement | None) -> Decision | None:
        """Return to the level before, if a lower one has filled the workers."""
        if self._lowered is None:
            return None
        (level, load), self._lowered = self._lowered, None
        demand = now.throughput * (1 + max(0.0, growth(now, before)))
        if level <= now.level or demand > NOISE * load:
            return None  # more comes in than did then
        self._failures = [*self._failures[1 - _MOST_FAILURES :], (now.level, load)]
        return Decision(
            level,
            f"{workers(now.level)} did {rate(now.throughput)} and {are(now.level)} too few: "
            f"{level} did {rate(load)}.",
        )


def _enough(level: int, now: Measurement, target: int = 0) -> str:
    return f"{workers(level)} {are(target or level)} enough for {_load(now)}"


def _load(now: Measurement) -> str:
    they = "it was" if now.level == 1 else "they were"
    return f"{rate(now.throughput)}: {they} busy {now.busy / now.level:.0%} of the time"
