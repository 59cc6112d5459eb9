"""A progress bar for long runs: rate, and lag at each operator."""

from __future__ import annotations

from collections.abc import Callable
from typing import TextIO

from callboard.core import checks
from callboard.observing.progress_line import ProgressLine
from callboard.streams.running.statistics import RunStatistics

_WIDTH = 20  # of the bar


class Progress(ProgressLine):
    """Shows how a run gets on, from entering to leaving the context, on a thread of its own.

    On a terminal, and in a notebook, it is one line, redrawn `every` seconds; elsewhere a new line
    every 10 seconds. It has the rows done, of `total` if that is known, and rows a second since the
    last look. For each operator it shows about how many rows wait for it.
    """

    def __init__(
        self,
        look: Callable[[], RunStatistics],
        total: int | None = None,
        *,
        every: float = 0.5,
        file: TextIO | None = None,
    ) -> None:
        super().__init__(every, file)
        self._look = look
        self._total = None if total is None else checks.whole("total", total, 0)
        self._rows = 0

    def _line(self, seconds: float) -> str:
        statistics = self._look()
        # An estimate of how many of the rows that were sent have left the graph.
        done = statistics.rows * statistics.rounds_done // max(1, statistics.rounds)
        rate, self._rows = (done - self._rows) / seconds, done
        return describe(statistics, done, self._total, rate)


def describe(statistics: RunStatistics, done: int, total: int | None, rate: float) -> str:
    """Say in one line how a run gets on."""
    bar = ""
    if total:
        part = min(done / total, 1.0)
        filled = round(part * _WIDTH)
        bar = f"{'█' * filled}{'░' * (_WIDTH - filled)} {part:4.0%}  "
    waiting = [
        f"{operator.name} {operator.queued:,.0f}"
        for operator in statistics.operators
        if operator.queued >= 1
    ]
    lag = f"  waiting: {', '.join(waiting)}" if waiting else ""
    return f"{bar}{done:,} rows  {rate:,.0f} rows/s{lag}"
