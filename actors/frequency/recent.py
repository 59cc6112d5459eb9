"""The most frequent keys of the recent past, in a window of panes with a summary each."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from callboard.core import checks
from callboard.core.handles import public_names
from callboard.core.text import safe_repr
from callboard.frequency.results import Counted, Frequent
from callboard.frequency.space_saving import SpaceSaving

__all__ = ["RecentSpaceSaving"]

MOST_PANES = 10_000


class RecentSpaceSaving:
    """Counts the keys of the last `panes` panes of `seconds` each, including the current one.

    With 60 panes of 60 seconds, an answer covers the last 59 to 60 minutes. Each pane has a summary
    with `1 / epsilon` counters, and an answer merges them. A count is never below the true one, and
    exceeds it by at most `epsilon` of the elements in the window. The merged summary is kept until
    a pane ends, so only the first query after that pays for the merge.

    Thread-safe: threads wait for each other.
    """

    __dir__ = public_names

    def __init__(
        self,
        epsilon: float,
        *,
        panes: int,
        seconds: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make the window. Raises ValueError.

        Args:
            epsilon: As for `SpaceSaving`.
            panes: The number of panes.
            seconds: The length of a pane. Without it, a pane ends when `rotate()` is called, for
                instance by a stream's event time.
            clock: Returns the time in seconds, which must never decrease.
        """
        self.epsilon = epsilon
        self.panes = checks.whole("panes", panes, 1, MOST_PANES)
        self.seconds = None if seconds is None else checks.seconds("a pane", seconds, zero=False)
        self._clock = clock
        self._lock = threading.RLock()  # a signal handler may count
        self._fills = SpaceSaving(epsilon)
        self._full: deque[SpaceSaving] = deque(maxlen=self.panes - 1)
        self._merged: SpaceSaving | None = None  # of those that are full
        self._ends = self._now() + self.seconds if self.seconds is not None else math.inf

    def update(
        self,
        keys: Iterable[Any] | Mapping[Any, int] | Any,
        weights: Iterable[int] | int | None = None,
    ) -> None:
        """Count keys in the current pane. See `SpaceSaving.update`."""
        with self._lock:
            self._end_due_panes()
            self._fills.update(keys, weights)

    def add(self, key: Any, weight: int = 1) -> None:
        """Count one key in the current pane. See `SpaceSaving.add`."""
        with self._lock:
            self._end_due_panes()
            self._fills.add(key, weight)

    def rotate(self) -> None:
        """End the current pane. If there are `panes` of them, the oldest leaves the window."""
        with self._lock:
            self._end_pane()

    def summary(self) -> SpaceSaving:
        """Return a new summary of the keys in the window."""
        with self._lock:
            self._end_due_panes()
            if self._merged is None:
                merged = SpaceSaving(self.epsilon)
                for pane in self._full:
                    merged.merge(pane)
                self._merged = merged  # only once it is complete
            whole = self._merged.copy()
            whole.merge(self._fills)
            return whole

    def top(self, k: int) -> list[Counted]:
        """Return the `k` keys with the greatest counts, in descending order."""
        return self.summary().top(k)

    def frequent(self, support: float) -> Frequent:
        """Return the keys above the fraction `support` of the elements in the window."""
        return self.summary().frequent(support)

    def estimate(self, key: Any) -> Counted:
        """Return how often a key occurred; for a key without a counter, how often it may have."""
        return self.summary().estimate(key)

    @property
    def total(self) -> int:
        """The number of elements in the window, with their weights."""
        with self._lock:
            self._end_due_panes()
            return self._fills.total + sum(pane.total for pane in self._full)

    def _now(self) -> float:
        now = self._clock()
        if not math.isfinite(now):
            raise ValueError(f"expected finite seconds of the clock, got {safe_repr(now)}")
        return now

    def _end_due_panes(self) -> None:
        if self.seconds is None:
            return
        late = self._now() - self._ends
        if late < 0:
            return
        ended = int(late // self.seconds) + 1
        self._ends += ended * self.seconds  # first: a signal handler may count
        for _ in range(min(ended, self.panes)):  # after more than these, all have left
            self._end_pane()

    def _end_pane(self) -> None:
        if self._full.maxlen:
            self._full.append(self._fills)
        self._fills = SpaceSaving(self.epsilon)
        self._merged = None

    def __repr__(self) -> str:
        pane = "" if self.seconds is None else f" of {self.seconds:g} s"
        return f"<{type(self).__name__} epsilon={self.epsilon!r}, {self.panes} panes{pane}>"
