"""Measurements of a period at one level of workers, and conclusions about the load.

A *level* is the number of workers that run (Schneider and Wu 2017, section 4.2.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SATURATED = 0.9
"""The smallest busy part of the workers if there is always something to do."""
GROWS = 0.1
"""The smallest growth of a backlog, as a part of the handled work, if workers are too few."""
NOISE = 1.25
"""Two measurements of one load have a smaller ratio: noise of 10% on each makes 1.1 / 0.9."""
_OUTRIGHT = 2.0
"""A ratio that no second period needs to confirm."""
_FEW = 10
"""The rows for each worker that may wait without being a backlog."""
_WORKED_OFF = 0.02
_HELD_BACK = 0.5
"""A part of a period: senders that wait for longer would send more."""


@dataclass(frozen=True)
class StageLoad:
    """A stage of a stream graph in the period."""

    name: str
    rows: float
    """Input rows a second."""
    cost: float
    """Seconds for a row; 0: unknown yet."""
    most_lanes: int
    """The number of workers that it can use at once."""
    busiest: float
    """The part of its rows in its busiest lane or partition, 0 to 1; 0: unknown."""
    waiting: float
    """Rows that waited before it when the period ended."""


@dataclass(frozen=True)
class Measurement:
    """A period at one level."""

    level: int
    seconds: float
    """The length of the period."""
    throughput: float
    """Messages of all actors and rows of all operators, a second. Rows count by their cost: one
    that takes twice as long as a mean row counts as two."""
    busy: float
    """The average number of busy workers, 0 to `level`."""
    starved: float = 0.0
    """The average number of busy workers that waited for a processor; 0 if unknown."""
    machine: float = 0.0
    """The part of the machine's processor time that all processes used, 0 to 1."""
    process: float = 0.0
    """The average number of processors that this process used."""
    waiting: float = 0.0
    """Rows that waited when the period ended."""
    waiting_cost: float = 1.0
    """The mean cost of these, as a multiple of that of a mean row."""
    held_back: float = 0.0
    """The part of the period in which a sender waited for room in a graph, 0 to 1."""
    stages: tuple[StageLoad, ...] = ()
    stuck: tuple[str, ...] = ()
    """Workers that should be suspended but are still in a user's code, with their places."""


def is_held_back(now: Measurement) -> bool:
    """Tell whether senders mostly wait for room: then they would send more."""
    return now.held_back > _HELD_BACK


def growth(now: Measurement, before: Measurement | None) -> float:
    """Return the growth of the backlog, as a part of the handled work.

    It is 0 if senders mostly wait for room, because the graph limits the backlog.
    """
    if before is None or is_held_back(now):
        return 0.0
    if max(now.waiting, before.waiting) <= _FEW * now.level:
        return 0.0
    return (_backlog(now) - _backlog(before)) / max(1.0, now.throughput * now.seconds)


def _backlog(now: Measurement) -> float:
    return now.waiting * now.waiting_cost


def works_off(now: Measurement, before: Measurement | None) -> float | None:
    """Return the number of periods until a shrinking backlog is gone, or None."""
    if before is None or growth(now, before) > -_WORKED_OFF:
        return None
    return _backlog(now) / (_backlog(before) - _backlog(now))


def demand(now: Measurement) -> float:
    """Return the number of workers that the load would keep busy; all, if senders wait for room.

    Idle workers then wait for each other, or for a shared resource.
    """
    return float(now.level) if is_held_back(now) else now.busy


def useful_workers(now: Measurement) -> float:
    """Return the number of workers that the stages can keep busy; infinity if unknown.

    A stage can use its lanes, or fewer if one partition has more than its part of the rows. The
    stage with the least room limits the rate of all, because rows pass the stages in constant
    proportions.
    """
    rooms = []
    for stage in now.stages:
        lanes = float(stage.most_lanes)
        if stage.busiest > 0:
            lanes = min(lanes, 1 / stage.busiest)
        used = stage.cost * stage.rows
        if used > 0:
            rooms.append(lanes / used)
    return now.busy * max(1.0, min(rooms)) if rooms else math.inf


class Steady:
    """A measured value that counts as constant until it exceeds the noise."""

    def __init__(self, reference: float | None = None) -> None:
        self._reference = reference
        self._before: float | None = None

    def moved(self, value: float, least: float = 0.0) -> list[float]:
        """Take the next value; return the values that show a change, if any.

        These are two, or one that differs by far. Differences of up to `least` do not count.
        """
        if self._reference is None:
            self._reference = value
        before, self._before = self._before, None
        if abs(value - self._reference) <= least or not self._beyond(value, NOISE):
            return []
        if self._beyond(value, _OUTRIGHT):
            return [value]
        self._before = value
        if before is None or (before > self._reference) != (value > self._reference):
            return []
        return [before, value]

    def _beyond(self, value: float, ratio: float) -> bool:
        assert self._reference is not None
        return value > self._reference * ratio or value * ratio < self._reference
