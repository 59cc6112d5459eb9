"""Pauses between the tries of a row."""

from __future__ import annotations

import random

LONGEST = 3600.0  # seconds


class Pauses:
    """`backoff` seconds after the first try, and twice as long after each other one, an hour at
    most. Each pause is shorter by a random part, of `jitter` at most, so that rows which failed
    together are not tried again together.
    """

    def __init__(self, backoff: float, jitter: float) -> None:
        self._backoff = backoff
        self._jitter = jitter
        self._chance = random.Random()

    def seed(self, seed: int | None) -> None:
        """Give the same pauses each time, for a seed."""
        self._chance = random.Random(seed)

    def after(self, tries: int) -> float:
        """Return the seconds to wait after so many tries."""
        longest = min(self._backoff * 2.0 ** (tries - 1), LONGEST)
        return longest * (1 - self._jitter * self._chance.random())
