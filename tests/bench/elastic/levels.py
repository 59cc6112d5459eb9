"""The choice of a system's level: fixed, or found by a strategy."""

import math
from typing import Any

from callboard import ActorSystem
from callboard.scheduling.elasticity.team_level import LevelStatistics
from elastic.trends import Trends

PHASES = {"light": 1, "ten times": 10, "light again": 1}
"""Of a load that changes: how many times the least one it is."""
SETTLING = 10
"""Periods in which a level may be looked for; changes after them count."""


def system_of(workers: int, strategy: str, period: float, least: int = 1) -> ActorSystem:
    """Make a system of so many workers; with a strategy, of so many at most.

    Others use the machine, too, so its ceiling is not heeded.
    """
    if not strategy:
        return ActorSystem(workers=workers)
    options = {"period": period, "ceiling": 1.0}
    system = ActorSystem(workers=(least, workers), config={"elasticity": options})
    if strategy == "trends":
        controller: Any = system._runtime.team.controller
        controller._strategy = Trends(least, workers, ceiling=1.0)
    return system


def settling(level: LevelStatistics | None, began: float, period: float) -> dict[str, float]:
    """Say after how many periods of a load the level was found, and how often it changed then.

    `began` is when the load did, in seconds since the system.
    """
    if level is None:
        return {}
    periods = [math.ceil((change.time - began) / period) for change in level.changes]
    return {
        "settled": max((each for each in periods if 0 < each <= SETTLING), default=0),
        "changes": sum(each > SETTLING for each in periods),
    }
