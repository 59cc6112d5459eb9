"""The bounds of the level, and the levels within them that are tried."""

from __future__ import annotations

import math
from dataclasses import dataclass

from callboard.scheduling.elasticity.measurement import Measurement, useful_workers

_MARGIN = 1.1
"""A margin for the noise of costs: one worker too many does less harm than one too few."""


def stepped(least: int, most: int, part: float) -> tuple[int, ...]:
    """Return levels from `least` to `most`, each larger by 1, or by `part` if that is more."""
    found = [least]
    while found[-1] < most:
        found.append(min(most, found[-1] + max(1, int(found[-1] * part))))
    return tuple(found)


@dataclass(frozen=True)
class LevelBounds:
    """The bounds of the level, and the ceiling of the machine's use.

    Above the ceiling, workers are added only up to the number of processors that other processes
    leave. If this process's own use is unknown, no worker is added, as in the paper.
    """

    least: int
    most: int
    ceiling: float
    processors: int

    def highest(self, now: Measurement) -> tuple[int, str]:
        """Return the highest level that may run, and the reason for this limit."""
        useful = useful_workers(now)
        bound, why = self.most, "that is the largest level"
        if _MARGIN * useful <= bound - 1:
            bound, why = math.ceil(_MARGIN * useful), "the operators cannot use more"
        left = max(now.level, int(self.processors * (1 - now.machine) + now.process))
        if now.machine > self.ceiling and left < bound:
            bound = left
            why = f"the machine is used to {now.machine:.0%}, above {self.ceiling:.0%}"
        return self.clipped(bound), why

    def others(self, now: Measurement) -> float:
        """Return the number of processors that other processes use."""
        return max(0.0, self.processors * now.machine - now.process)

    def levels(self, highest: int) -> list[int]:
        """Return the levels that a search visits, up to `highest`."""
        return list(stepped(self.least, highest, 0.08))

    def clipped(self, level: int) -> int:
        """Return the nearest level within the bounds."""
        return max(self.least, min(self.most, level))
