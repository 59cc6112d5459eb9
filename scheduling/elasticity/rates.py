"""The strategy, which computes a level from rates, verifies it, and keeps it while the load stays.

A light load leaves workers idle, so the level follows from the number of busy ones. A full load
does not show how much more could be done, so curves are fitted to the throughputs of a few levels.
`docs/design/elasticity.md` has the reasons.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

from callboard.core import checks
from callboard.core.errors import ConfigError
from callboard.core.text import safe_repr
from callboard.core.threads.cores import usable_cores
from callboard.scheduling.elasticity.contention import Contention
from callboard.scheduling.elasticity.decision import Decision, number, stuck, workers
from callboard.scheduling.elasticity.full_load import FullLoad
from callboard.scheduling.elasticity.level_bounds import LevelBounds
from callboard.scheduling.elasticity.light_load import HIGH, LightLoad, is_behind
from callboard.scheduling.elasticity.measurement import Measurement, demand
from callboard.scheduling.elasticity.remembered_loads import Remembered

_SHORT = 0.1
"""The shortest period that counts after a change of level, in seconds."""


class Rates:
    """Computes the level of a light load, and searches for that of a full one.

    With a `memory` it recognises the loads of earlier runs.
    """

    def __init__(
        self,
        least: int,
        most: int,
        ceiling: float = 0.8,
        memory: Remembered | None = None,
        processors: int | None = None,
    ) -> None:
        processors = usable_cores() if processors is None else processors
        self._bounds = LevelBounds(least, most, ceiling, processors)
        self._light = LightLoad(self._bounds)
        self._full = FullLoad(self._bounds, Remembered() if memory is None else memory)
        self._contention = Contention(self._bounds)
        self._load: LightLoad | FullLoad = self._light
        self._before: Measurement | None = None

    def decide(self, measurement: Measurement) -> Decision:
        """Return the next period's level."""
        distrust = self._distrust(measurement)
        if distrust:
            stay = "stays" if measurement.level == 1 else "stay"
            kept = f"{workers(measurement.level)} {stay}: {distrust}."
            decision = Decision(measurement.level, kept)
        else:
            decision = self._decided(measurement)
            self._contention.note(measurement, decision.level)
        self._before = measurement
        return Decision(self._bounds.clipped(decision.level), decision.reason)

    def _distrust(self, now: Measurement) -> str:
        """Return the reason to ignore a measurement, or an empty text."""
        if now.stuck:
            return stuck(now.stuck)
        values = (now.seconds, now.throughput, now.busy, now.waiting)
        if not all(math.isfinite(value) and value >= 0 for value in values):
            return "the measurements are not numbers"
        changed = self._before is not None and self._before.level != now.level
        if changed and now.seconds < _SHORT:
            return f"{number(now.seconds)} seconds after a change are too few to learn from"
        return ""

    def _decided(self, now: Measurement) -> Decision:
        judged = self._contention.judge(now)
        if judged is not None:
            self._change_to(self._full)
            self._full.settle()
            return judged
        kept = self._load.keeps(now, self._before)
        if kept is not None:
            return self._contention.fewer(now, self._before) or kept
        full = is_behind(now, self._before) or demand(now) > HIGH * now.level
        if full != (self._load is self._full):
            self._change_to(self._full if full else self._light, rising=self._before is not None)
            reverted = self._light.revert(now, self._before) if full else None
            if reverted is not None:
                return reverted
        return self._load.decide(now, self._before)

    def _change_to(self, load: LightLoad | FullLoad, rising: bool = False) -> None:
        self._load = load
        self._light.begin()
        self._full.begin(rising)


@dataclass(frozen=True)
class Elasticity:
    """The options of a system that adapts the number of its workers. Raises ConfigError."""

    period: float = 1.0
    """The seconds between decisions."""
    ceiling: float = 0.8
    """The used part of the machine's processor time above which no worker is added."""
    remember: str | os.PathLike[str] | None = None
    """The file that keeps the measurements for later runs."""

    def __post_init__(self) -> None:
        checks.seconds("elasticity's period", self.period, zero=False, error=ConfigError)
        checks.finite("elasticity's ceiling", self.ceiling, error=ConfigError)
        if not 0 <= self.ceiling <= 1:
            raise ConfigError(
                f"expected a number from 0 to 1 as elasticity's ceiling, "
                f"got {safe_repr(self.ceiling)}"
            )
        if self.remember is not None and not isinstance(self.remember, str | os.PathLike):
            raise ConfigError(
                f"expected a path as elasticity's `remember`, got {safe_repr(self.remember)}"
            )

    def make(self, least: int, most: int) -> Rates:
        """Return a new strategy. Raises ConfigError if the file is not one of this module."""
        memory = None if self.remember is None else Remembered(self.remember)
        return Rates(least, most, self.ceiling, memory)
