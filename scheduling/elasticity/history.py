"""The level of workers as a user sees it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of the level of workers."""

    time: float
    """When it was decided, in seconds since the system began."""
    before: int
    level: int
    reason: str
    took: float
    """The seconds until all workers and lanes were told."""


@dataclass(frozen=True, slots=True)
class LevelStatistics:
    """How many workers run, and why."""

    level: int
    least: int
    most: int
    reason: str
    """The reason of the latest decision, which may have kept the level."""
    changes: tuple[LevelChange, ...]
    """The latest thousand."""

    def __str__(self) -> str:
        return f"{self.level} of {self.most} workers run. {self.reason}"
