"""The order of the rows of Arrow batches: that of `time_order.pyx`, a column at a time."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, NamedTuple

import numpy as np

from callboard.streams.programs.columns.batches import joined

_LEAST = -(2**63)


class Rows(NamedTuple):
    """Rows of a batch in order of time, and columns of numbers that go with them."""

    batch: Any
    times: Any
    columns: list[Any]

    def __len__(self) -> int:
        return len(self.times)

    def at(self, places: Any) -> Rows:
        """Return the rows at some places, in their order."""
        return Rows(
            self.batch.take(places), self.times[places], [column[places] for column in self.columns]
        )

    def part(self, begin: int, end: int) -> Rows:
        """Return the rows from one place up to, not including, another. Nothing is copied."""
        return Rows(
            self.batch.slice(begin, end - begin),
            self.times[begin:end],
            [column[begin:end] for column in self.columns],
        )

    def in_order(self) -> Rows:
        """Sort by time; rows of one time stay as they are."""
        if np.all(self.times[:-1] <= self.times[1:]):
            return self
        return self.at(np.argsort(self.times, kind="stable"))


class BatchOrder:
    """Batches on their way into one order of rows: by time, by source, as they came."""

    def __init__(self, sources: int) -> None:
        self.delay_threshold: Any = 0
        self.come_to: list[Any] = [None] * sources
        self.latest: list[Any] = [None] * sources
        self.idle = [False] * sources
        # Rows that were handed out while one was idle go up to this time and source; or None.
        self.passed: tuple[Any, int] | None = None
        # Rows, and a time which none of them nor of those behind them is before.
        self.queues: list[deque[tuple[Rows, Any]]] = [deque() for _ in range(sources)]

    def waiting(self) -> list[Rows]:
        """Return the rows that were added, and not taken yet."""
        return [rows for queue in self.queues for rows, _ in queue]

    def distances(self) -> tuple[Any, ...]:
        """Return the progress of sources, for a snapshot."""
        return self.come_to, self.latest, self.passed

    def go_on(self, distances: tuple[Any, ...]) -> None:
        """Continue from the saved progress of another one."""
        self.come_to, self.latest, self.passed = distances

    def are_late(self, source: int, times: Any) -> Any:
        """Return a mask of late rows: their source, or the rows handed out, are beyond them."""
        reached = self._behind(np.maximum.accumulate(times))
        late = np.zeros(len(times), bool)
        late[1:] = times[1:] < reached[:-1]
        if self.come_to[source] is not None:
            late |= times < self.come_to[source]
        if self.passed is not None:
            time, last = self.passed
            late |= times <= time if source < last else times < time
        return late

    def add(self, source: int, rows: Rows) -> None:
        """Add one row or more, none of which is late."""
        latest = rows.times.max()
        reached = self._behind(latest).item()
        before = self.latest[source]
        self.latest[source] = latest.item() if before is None else max(before, latest.item())
        rows = rows.in_order()
        before = self.come_to[source]
        self.queues[source].append((rows, -math.inf if before is None else before))
        self.advance(source, reached)

    def advance(self, source: int, time: Any) -> None:
        """No row before `time` comes from a source any more."""
        if self.come_to[source] is None or time > self.come_to[source]:
            self.come_to[source] = time

    def bound(self) -> tuple[Any, int] | None:
        """Return the time and the source up to which all is ready; None: nothing is."""
        if True in self.idle:
            return self._bound_of_awake()
        if None in self.come_to:
            return None
        return min((time, source) for source, time in enumerate(self.come_to))

    def _bound_of_awake(self) -> tuple[Any, int] | None:
        awake = [
            (time, source) for source, time in enumerate(self.come_to) if not self.idle[source]
        ]
        if any(time is None for time, _ in awake):
            return None
        if awake:
            least = min(awake)
            self.passed = least if self.passed is None else max(self.passed, least)
        else:  # all is ready that has come
            come = [
                (time, source)
                for times in (self.come_to, self.latest)
                for source, time in enumerate(times)
                if time is not None
            ]
            self.passed = max(come, default=None)
        return self.passed

    def ready(self, final: bool) -> list[Rows | None]:
        """Take the ready rows of each source, in order, or at the end all; None: there are none."""
        bound = None if final else self.bound()
        if not final and bound is None:
            return [None] * len(self.queues)
        return [self._take(source, bound) for source in range(len(self.queues))]

    def _take(self, source: int, bound: tuple[Any, int] | None) -> Rows | None:
        found: list[Rows] = []
        left: list[tuple[Rows, Any]] = []
        queue = self.queues[source]
        while queue and (bound is None or queue[0][1] <= bound[0]):
            rows, since = queue.popleft()
            end = len(rows) if bound is None else _ready(rows.times, bound[0], source <= bound[1])
            if end:
                found.append(rows if end == len(rows) else rows.part(0, end))
            if end < len(rows):
                left.append((rows.part(end, len(rows)), since))
        queue.extendleft(reversed(left))
        if not found:
            return None
        if len(found) == 1:
            return found[0]
        columns = [
            np.concatenate(columns)
            for columns in zip(*(rows.columns for rows in found), strict=True)
        ]
        times = np.concatenate([rows.times for rows in found])
        return Rows(joined([rows.batch for rows in found]), times, columns).in_order()

    def _behind(self, times: Any) -> Any:
        """Return the times that are `delay_threshold` before others; what 64 bits do not hold is
        the least.
        """
        if np.issubdtype(times.dtype, np.integer):
            return np.maximum(times, _LEAST + self.delay_threshold) - self.delay_threshold
        return times - self.delay_threshold


def _ready(times: Any, bound: Any, with_equal: bool) -> int:
    """Count the times before a bound, or also those that equal it. It may be beyond 64 bits."""
    if times[-1] < bound:
        return len(times)
    if times[0] > bound:
        return 0
    return int(np.searchsorted(times, times.dtype.type(bound), "right" if with_equal else "left"))


def in_one_order(ready: list[Rows]) -> tuple[Any, Any]:
    """Return the order of the rows of several sources, one after the other, and their sources."""
    order = np.argsort(np.concatenate([rows.times for rows in ready]), kind="stable")
    sources = np.repeat(np.arange(len(ready), dtype=np.uint8), [len(rows) for rows in ready])
    return order, sources[order]
