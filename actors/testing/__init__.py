"""Tools for testing actors: a system that runs only when told to, probes, and seeded replay.

A `ManualSystem` has no threads, and a logical clock. The test runs it, step by step or until it is
idle, and one seed is one interleaving of its actors. A `Probe` replaces an actor's partners.
`replay` runs a test with many seeds, and says how to rerun one that failed.
"""

from callboard.testing.manual import ManualSystem
from callboard.testing.probe import Probe
from callboard.testing.seeds import replay

__all__ = ["ManualSystem", "Probe", "replay"]
