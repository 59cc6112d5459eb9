"""A line that shows how a run of a net gets on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from callboard.nets.running.messages import NetStatistics
from callboard.observing.progress_line import ProgressLine


class NetProgress(ProgressLine):
    """Shows how a run gets on, from entering to leaving the context, on a thread of its own.

    On a terminal, and in a notebook, it is one line, redrawn `every` seconds; elsewhere a new line
    every 10 seconds.
    """

    def __init__(
        self, look: Callable[[], NetStatistics], every: float, file: TextIO | None = None
    ) -> None:
        super().__init__(every, file)
        self._look = look
        self._hops = 0

    def _line(self, seconds: float) -> str:
        seen = self._look()
        rate, self._hops = (seen.hops - self._hops) / seconds, seen.hops
        return describe(seen, rate)


def describe(seen: NetStatistics, rate: float) -> str:
    """Say in one line how a run gets on."""
    entities = sum(place["entities"] for place in seen.places.values())
    return (
        f"{seen.sent:,} records sent  {seen.put_out:,} outputs taken  {rate:,.0f} hops a second  "
        f"{seen.elsewhere:,} at boxes elsewhere  {entities:,} entities"
    )
