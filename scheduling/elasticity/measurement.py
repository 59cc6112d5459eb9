"""A measurement of a period at one level of threads, and a strategy's decision.

A *level* is the number of workers that run (Schneider and Wu 2017, section 4.2.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


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


@dataclass(frozen=True)
class Decision:
    """The level of the next period, and why, in words."""

    level: int
    reason: str


class Strategy(Protocol):
    """Finds a level by measurements. One thread calls it, once for each period."""

    def decide(self, measurement: Measurement) -> Decision:
        """Return the next period's level, at least `least` and at most `most`."""
        ...
