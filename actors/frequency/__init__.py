"""Frequent keys of a stream: bounded summaries of how often keys occurred."""

from callboard.frequency.actors import FrequencyActors
from callboard.frequency.recent import RecentSpaceSaving
from callboard.frequency.results import Counted, Frequent
from callboard.frequency.space_saving import SpaceSaving

__all__ = ["Counted", "FrequencyActors", "Frequent", "RecentSpaceSaving", "SpaceSaving"]
