"""A team whose level of workers changes: what the controller knows of it, and what users see."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from callboard.scheduling.flow.heuristics import OperatorView


class LeveledWorker(Protocol):
    """One worker."""

    @property
    def name(self) -> str:
        """As its thread is called."""
        ...

    @property
    def thread(self) -> threading.Thread | None:
        """Its thread, if it was started."""
        ...

    @property
    def handled(self) -> int:
        """How many messages it has handled."""
        ...

    @property
    def waited_ns(self) -> int:
        """How long it was idle or suspended, in nanoseconds."""
        ...

    @property
    def dispatches(self) -> int:
        """How many dispatches it has made."""
        ...

    @property
    def current_actor(self) -> int:
        """The number of the actor that it dispatches, or 0."""
        ...


class LeveledGraph(Protocol):
    """A running graph whose lanes follow the level."""

    @property
    def admitted(self) -> int:
        """How many rounds have been admitted."""
        ...

    @property
    def done(self) -> int:
        """How many of them have left."""
        ...

    @property
    def held_back_ns(self) -> int:
        """For how long senders have waited for room in it, in nanoseconds."""
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
    """The first worker does all work so far."""

    @property
    def workers(self) -> Sequence[LeveledWorker]:
        """All, by their index."""
        ...

    @property
    def lagging(self) -> Sequence[LeveledWorker]:
        """Those that are to be suspended, and are in a dispatch."""
        ...

    def following(self) -> Sequence[LeveledGraph]:
        """Return the graphs that follow the level."""
        ...

    def set_level(self, level: int) -> None:
        """Let the first `level` workers run. Raises CallboardError if there are no threads."""
        ...


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
