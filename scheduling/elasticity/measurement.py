"""A measurement of a period at one level of workers, and what it says of the load.

A *level* is the number of workers that run (Schneider and Wu 2017, section 4.2.1).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SATURATED = 0.9
"""The part of the workers that is busy, at least, if there is always something to do."""
GROWS = 0.1
"""A backlog grows by this part of what is handled, at least, where workers are too few."""
NOISE = 1.25
"""Two measurements of one load have a smaller ratio: noise of 10% on each makes 1.1 / 0.9."""
_OUTRIGHT = 2.0
"""A ratio that no second period needs to confirm."""
_FEW = 10
"""Rows that wait before a worker are no backlog up to this number."""
_WORKED_OFF = 0.02
_HELD_BACK = 0.5
"""The part of a period: senders that wait for longer would bring more."""


@dataclass(frozen=True)
class StageLoad:
    """A stage of a stream graph in the period."""

    name: str
    rows: float
    """Rows that it took in, a second."""
    cost: float
    """Seconds that a row takes it; 0: not known yet."""
    most_lanes: int
    """How many workers it can use at once."""
    busiest: float
    """The largest share of its rows that one lane or partition of it had, 0 to 1; 0: not known."""
    waiting: float
    """Rows that waited before it when the period ended."""


@dataclass(frozen=True)
class Measurement:
    """A period at one level."""

    level: int
    seconds: float
    """How long the period was."""
    throughput: float
    """Messages of all actors and rows of all operators, a second. Rows count by their cost: one
    that takes twice as long as a mean row counts as two."""
    busy: float
    """How many of the level's workers had something to do, on average: 0 to `level`."""
    starved: float = 0.0
    """How many of the busy ones waited for a processor, on average; 0 where it is not known."""
    machine: float = 0.0
    """The part of the machine's processor time that was used, by all processes, 0 to 1."""
    process: float = 0.0
    """How many processors this process used, on average."""
    waiting: float = 0.0
    """Rows that waited when the period ended."""
    waiting_cost: float = 1.0
    """The cost of one of these, as a multiple of a mean row's."""
    held_back: float = 0.0
    """The part of the period in which a sender waited for room in a graph, 0 to 1."""
    stages: tuple[StageLoad, ...] = ()
    stuck: tuple[str, ...] = ()
    """Workers that were to be suspended and are still in a user's code, and where."""


def is_held_back(now: Measurement) -> bool:
    """Say whether senders mostly wait for room: then more would come."""
    return now.held_back > _HELD_BACK


def growth(now: Measurement, before: Measurement | None) -> float:
    """Return how much more waits than before, as a part of what was handled.

    Nothing, if senders mostly wait for room: more does not wait in the graph than may.
    """
    if before is None or is_held_back(now):
        return 0.0
    if max(now.waiting, before.waiting) <= _FEW * now.level:
        return 0.0
    return (_backlog(now) - _backlog(before)) / max(1.0, now.throughput * now.seconds)


def _backlog(now: Measurement) -> float:
    return now.waiting * now.waiting_cost


def works_off(now: Measurement, before: Measurement | None) -> float | None:
    """Return in how many periods a backlog is gone that becomes smaller, or None."""
    if before is None or growth(now, before) > -_WORKED_OFF:
        return None
    return _backlog(now) / (_backlog(before) - _backlog(now))


def demand(now: Measurement) -> float:
    """Return how many workers the load would have busy; all, if senders mostly wait for room.

    Those that are idle then wait for each other, or for something that they have in common.
    """
    return float(now.level) if is_held_back(now) else now.busy


def useful_workers(now: Measurement) -> float:
    """Return how many workers the stages can keep busy; infinity if that is not known.

    A stage has so many lanes, or fewer if its busiest partition has more than its share. The stage
    with the least room limits the rate of all: rows pass through them in constant proportions.
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
    """A measured value that counts as the same until it has left the noise."""

    def __init__(self, reference: float | None = None) -> None:
        self._reference = reference
        self._before: float | None = None

    def moved(self, value: float, least: float = 0.0) -> list[float]:
        """Take the next value; return the values that show a move: one, or two, or none yet.

        One is enough if it differs by far. Differences of up to `least` are none.
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
