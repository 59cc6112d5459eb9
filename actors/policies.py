"""Placement and priority policies: callboard's own, and the base classes for others.

A placement policy chooses an actor's worker; a priority policy chooses which ready actor a worker
runs next. Configurations name them in snake case: `round_robin`.
"""

from callboard.core.errors import PolicyError
from callboard.scheduling.placement import (
    Balanced,
    Blocks,
    Fixed,
    LeastLoaded,
    Near,
    PlacementPolicy,
    RoundRobin,
)
from callboard.scheduling.priority import (
    Fifo,
    LongestQueue,
    PriorityPolicy,
    ShortestFirst,
    TwoLevel,
    Weighted,
)

__all__ = [
    "Balanced",
    "Blocks",
    "Fifo",
    "Fixed",
    "LeastLoaded",
    "LongestQueue",
    "Near",
    "PlacementPolicy",
    "PolicyError",
    "PriorityPolicy",
    "RoundRobin",
    "ShortestFirst",
    "TwoLevel",
    "Weighted",
]
