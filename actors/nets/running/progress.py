"""A line that shows how a run of a net gets on."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from typing import Self, TextIO

from callboard.nets.running.messages import NetStatistics


class NetProgress:
    """Shows how a run gets on, from entering to leaving the context, on a thread of its own.

    On a terminal it is one line, redrawn `every` seconds; elsewhere a new line every 10 seconds.
    """

    def __init__(
        self, look: Callable[[], NetStatistics], every: float, file: TextIO | None = None
    ) -> None:
        self._look = look
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
        hops, then = 0, time.monotonic()
        over = False
        while not over:
            over = self._over.wait(self._every)
            seen, now = self._look(), time.monotonic()
            line = describe(seen, (seen.hops - hops) / max(now - then, 1e-9))
            hops, then = seen.hops, now
            if self._redraws:
                print(f"\r\033[K{line}", end="\n" if over else "", file=self._file, flush=True)
            else:
                print(line, file=self._file, flush=True)


def describe(seen: NetStatistics, rate: float) -> str:
    """Say in one line how a run gets on."""
    entities = sum(place["entities"] for place in seen.places.values())
    return (
        f"{seen.sent:,} records sent  {seen.put_out:,} outputs taken  {rate:,.0f} hops a second  "
        f"{seen.elsewhere:,} at boxes elsewhere  {entities:,} entities"
    )
