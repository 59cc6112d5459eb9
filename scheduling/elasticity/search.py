"""The level at which the throughput is largest, found within a few periods."""

from __future__ import annotations

from collections.abc import Collection
from statistics import median

from callboard.scheduling.elasticity.curves import curves_up_to

PERIODS = 5
_PROMISE = 0.005
"""The part of the throughput that a try must promise."""
_TIE = 0.01
"""The lowest of levels that differ by less is the best."""


class Search:
    """One search, for one load, among levels up to `most`."""

    def __init__(self, most: int) -> None:
        self._curves = curves_up_to(most)
        self._samples: dict[int, list[float]] = {}
        self._periods = 0

    @property
    def measured(self) -> dict[int, float]:
        """The throughput at each level that was tried."""
        return {level: median(samples) for level, samples in self._samples.items()}

    def add(self, level: int, throughput: float) -> None:
        """Add what a period showed."""
        self.note(level, throughput)
        self._periods += 1

    def note(self, level: int, throughput: float) -> None:
        """Add what a period showed that was not the search's."""
        self._samples.setdefault(level, []).append(max(throughput, 1e-9))

    def next(self, levels: Collection[int]) -> tuple[int, bool]:
        """Return which of `levels` is to run next, and whether the search has ended with it."""
        measured = self.measured
        foretold = self._curves.foretell(measured, sorted(levels))
        tries = [each for each in foretold if each.level not in measured]
        most = max(tries, key=lambda each: each.gain, default=None)
        if self._periods < PERIODS and most is not None and most.gain >= _PROMISE:
            return most.level, False
        largest = max(each.mean for each in foretold)
        return next(each.level for each in foretold if each.mean >= largest - _TIE), True
