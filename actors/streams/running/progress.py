"""A progress bar for long runs: rate, and lag at each operator."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from typing import Self, TextIO

from callboard.core import checks
from callboard.streams.running.statistics import RunStatistics

_WIDTH = 20  # of the bar


class Progress:
    """Shows how a run gets on, from entering to leaving the context, on a thread of its own.

    On a terminal it is one line, redrawn `every` seconds; elsewhere a new line every 10 seconds:
    rows done, of `total` if that is known, and rows a second since the last look. For each operator
    it shows about how many rows wait for it.
    """

    def __init__(
        self,
        look: Callable[[], RunStatistics],
        total: int | None = None,
        *,
        every: float = 0.5,
        file: TextIO | None = None,
    ) -> None:
        every = checks.seconds("every", every, zero=False)
        self._look = look
        self._total = None if total is None else checks.whole("total", total, 0)
        self._file = sys.stderr if file is None else file
        self._redraws = self._file.isatty()
        self._every = every if self._redraws else max(every, 10.0)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _show(self) -> None:
        rows, then = 0, time.monotonic()
        while True:
            over = self._over.wait(self._every)
            statistics, now = self._look(), time.monotonic()
            # An estimate of how many of the rows that were sent have left the graph.
            done = statistics.rows * statistics.rounds_done // max(1, statistics.rounds)
            line = describe(statistics, done, self._total, (done - rows) / (now - then))
            rows, then = done, now
            if self._redraws:
                columns = shutil.get_terminal_size().columns - 1
                end = "\n" if over else ""
                print(f"\r\033[K{line[:columns]}", end=end, file=self._file, flush=True)
            else:
                print(line, file=self._file, flush=True)
            if over:
                return


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
