"""The comparison of rates for `processes="auto"`.

The rule of `worker_processes.choice` predicts the time of a row. It knows nothing of caches, of
wake-ups, or of other programs on the machine. So it decides only if one place is clearly faster.
Otherwise a trial does: the rates of rows are measured in both places, by the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from callboard.worker_processes.choice import CLEARLY

_CLOSE = 0.6, 1.2  # predicted times in processes, as multiples of those in the program
_FASTER = 1.05  # the rate in processes, of that in the program, that is worth their work
_WARM_UP = 30_000_000  # nanoseconds in a place before its rate is measured
_WINDOW = 150_000_000  # of a measurement
_PAUSE = 2_000_000_000  # before the second trial; each later pause is twice as long
_LONGEST_PAUSE = 32 * _PAUSE


class RateTrial:
    """The rates of an operator's rows in the program and in processes.

    A source that is slower than both gives equal rates: then rows stay in the program.
    """

    def __init__(self, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._clock = clock  # nanoseconds
        self._is_away = False
        self._warm_up: int | None = None  # its end
        self._begun: int | None = None  # of a measurement
        self._rows = 0
        self._rates: list[float | None] = [None, None]  # rows a nanosecond, here and in processes
        self._has_won = self._has_lost = False  # the processes, since rows are there
        self._due = 0  # the time of the next trial
        self._pause = _PAUSE

    @property
    def result(self) -> str:
        """The rates for statistics, if both are measured."""
        here, there = self._rates
        if here is None or there is None:
            return ""
        return f"; tried: {here * 1e9:,.0f} rows/s in the program, {there * 1e9:,.0f} in processes"

    def restart(self) -> None:
        """Measure the place again: what has been measured says nothing of it."""
        self._warm_up = None

    def note(self, is_away: bool, rows: int) -> None:
        """Note that a round has been done."""
        now = self._clock()
        if self._warm_up is None or is_away != self._is_away:
            self._is_away, self._warm_up, self._begun = is_away, now + _WARM_UP, None
            self._rates[is_away] = None
            self._has_lost = False
        elif self._begun is None:
            if now >= self._warm_up:
                self._begun, self._rows = now, 0
        else:
            self._rows += rows
            elapsed = now - self._begun
            if elapsed >= _WINDOW:
                self._rates[is_away] = self._rows / elapsed
                self._begun, self._rows = now, 0

    def keeps_here(self, is_here: bool, ratio: float) -> bool:
        """Return whether further rounds run here.

        `ratio` is the predicted time of a row in processes, as a multiple of that in the program.
        """
        if not _is_close(ratio):
            self._has_won = False
            return ratio > (CLEARLY if is_here else 1)
        if is_here == self._is_away or self._rates[self._is_away] is None:
            return is_here  # until this place is measured
        if is_here:
            return not self.is_due(ratio)
        if self._has_won and not self.is_due(ratio):
            return False
        if self._has_won or self._rates[0] is None:
            self._has_won, self._due = False, 0  # measure the program, and come back
            return True
        if self.has_lost(ratio):
            return True
        self._has_won = True
        self._wait()
        return False

    def is_due(self, ratio: float) -> bool:
        """Return whether rows may change their place for a trial."""
        if not _is_close(ratio):
            return True
        return self._rates[self._is_away] is not None and self._clock() >= self._due

    def has_lost(self, ratio: float) -> bool:
        """Return whether rows come no faster from processes than they did from the program.

        False if one place is clearly faster by the rule.
        """
        here, there = self._rates
        if not self._is_away or not _is_close(ratio) or here is None or there is None:
            return False
        if not self._has_lost and there < _FASTER * here:
            self._has_lost = True
            self._wait()
        return self._has_lost

    def _wait(self) -> None:
        self._due = self._clock() + self._pause
        self._pause = min(2 * self._pause, _LONGEST_PAUSE)


def _is_close(ratio: float) -> bool:
    return _CLOSE[0] < ratio < _CLOSE[1]
