"""Tools to test actors with: a system that runs when it is told to, probes, and seeded replay.

A `ManualSystem` has no threads and no clock of its own. The test runs it, step by step or until it
is idle, and one seed is one interleaving of its actors. A `Probe` stands in for an actor's
partners. `replay` runs a test under many seeds, and says how to rerun the one that failed.
"""

from callboard.testing.manual import ManualSystem
from callboard.testing.probe import Probe
from callboard.testing.seeds import replay

__all__ = ["ManualSystem", "Probe", "replay"]
