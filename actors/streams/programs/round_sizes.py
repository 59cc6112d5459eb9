"""The size of rounds, unless the user specifies it."""

from __future__ import annotations

from typing import Protocol

MOST_ROWS = 512
UNTRIED = 8  # rows at most, before a round has left
SPAN_NS = 2_000_000  # that a round takes at the slowest operator: a thousand times its own cost
LOOK_EVERY = 64  # rounds


class Measured(Protocol):
    """The measured work of a running graph."""

    @property
    def admitted(self) -> int:
        """The number of rounds that have come in."""

    @property
    def done(self) -> int:
        """The number of rounds that have left."""

    def longest_ns(self) -> int:
        """Return how long a row took where it took longest since the last call; -1: none left."""


class RoundSizes:
    """The size of the next round: fewer rows, the longer a row takes where it takes longest.

    A worker is handed whole rounds. So a round of slow rows keeps one worker busy, and the others
    idle. Nothing is known at first, so the first rounds are small.
    """

    def __init__(self, flow: Measured, workers: int) -> None:
        self._flow = flow
        self._each = 2 * workers  # rounds of 1, of 2 and of 4 rows
        self._size = 1
        self._look_at = 1  # round that has left

    def next(self) -> int:
        """Return how many rows the next round has at most. Any sender."""
        flow = self._flow
        done = flow.done
        if done == 0:
            return min(UNTRIED, 1 << min(flow.admitted // self._each, 8))
        if done >= self._look_at:
            self._look_at = done + min(done, LOOK_EVERY)
            longest = flow.longest_ns()
            if longest >= 0:
                self._size = MOST_ROWS if longest == 0 else _clamped(SPAN_NS // longest)
        return self._size


def _clamped(rows: int) -> int:
    return max(1, min(MOST_ROWS, rows))
