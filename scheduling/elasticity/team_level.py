"""The level of a team's workers: the controller's view of the team, and users' statistics."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from callboard.scheduling.flow.heuristics import OperatorView


class LeveledWorker(Protocol):
    """A worker, as the controller sees it."""

    @property
    def name(self) -> str:
        """The name of its thread."""
        ...

    @property
    def thread(self) -> threading.Thread | None:
        """Its thread, or None before the start."""
        ...

    @property
    def handled(self) -> int:
        """The number of messages that it has handled."""
        ...

    @property
    def waited_ns(self) -> int:
        """The time that it was idle or suspended, in nanoseconds."""
        ...

    @property
    def dispatches(self) -> int:
        """The number of its dispatches."""
        ...

    @property
    def current_actor(self) -> int:
        """The number of the actor in its present dispatch, or 0."""
        ...


class LeveledGraph(Protocol):
    """A running graph whose lanes follow the level."""

    @property
    def admitted(self) -> int:
        """The number of admitted rounds."""
        ...

    @property
    def done(self) -> int:
        """The number of these that have left."""
        ...

    @property
    def held_back_ns(self) -> int:
        """The time that senders have waited for room in it, in nanoseconds."""
        ...

    def operators(self) -> Iterable[tuple[int, OperatorView]]:
        """Return its operators, with their places in the plan."""
        ...

    def partitions(self, number: int) -> Sequence[tuple[int, float]]:
        """Return the rows and the busy seconds of each partition of the operator at a place."""
        ...


class LeveledTeam(Protocol):
    """The workers of a system. The first `started` have threads, and the first `level` run."""

    level: int
    started: int
    awaits_need: bool
    """The first worker does all the work, and the others have no threads yet."""

    @property
    def workers(self) -> Sequence[LeveledWorker]:
        """All workers, by their index."""
        ...

    @property
    def lagging(self) -> Sequence[LeveledWorker]:
        """The suspended workers that are still in a dispatch."""
        ...

    def following(self) -> Sequence[LeveledGraph]:
        """Return the graphs that follow the level."""
        ...

    def set_level(self, level: int) -> None:
        """Let the first `level` workers run. Raises CallboardError if threads cannot be started."""
        ...


@dataclass(frozen=True, slots=True)
class LevelChange:
    """A change of the level of workers."""

    time: float
    """The time of the decision, in seconds since the system began."""
    before: int
    level: int
    reason: str
    took: float
    """The seconds that it took to change all workers and lanes."""


@dataclass(frozen=True, slots=True)
class LevelStatistics:
    """The number of workers that run, and the reason."""

    level: int
    least: int
    most: int
    reason: str
    """The reason of the latest decision, which may have kept the level."""
    changes: tuple[LevelChange, ...]
    """The latest thousand changes."""

    def __str__(self) -> str:
        return f"{self.level} of {self.most} workers run. {self.reason}"
