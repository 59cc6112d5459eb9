"""Counts of the rows that a run dropped: skipped, late and unpaired ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from threading import Lock
from typing import Any

from callboard.core import checks
from callboard.core.handles import public_names
from callboard.dead_letters import DeadLetters
from callboard.streams.errors import FailedRow


class RowCounts:
    """Counts rows that are skipped, late (`lates`) or without partners (`unpaireds`), by operator.

    It keeps the first `kept` failures. Programs call `skipped()`, `late()` and `unpaired()` from
    any thread.
    """

    __dir__ = public_names

    def __init__(self, kept: int = 100) -> None:
        self.kept = checks.whole("kept", kept, 0)
        self.skips: Counter[str] = Counter()
        self.lates: Counter[str] = Counter()
        self.unpaireds: Counter[str] = Counter()
        self.failures: list[FailedRow] = []
        self._lock = Lock()

    def _skipped(self, failure: FailedRow) -> None:
        """Count an input that an operator with `errors="skip"` raised at."""
        with self._lock:
            self.skips[failure.operator] += 1
            if len(self.failures) < self.kept:
                self.failures.append(failure)
        self._tell("skipped", failure, failure.error)

    def _late(self, operator: str, row: Any) -> None:
        """Count a row that came after its windows had closed."""
        with self._lock:
            self.lates[operator] += 1
        self._tell("late", row)

    def _unpaired(self, operator: str, row: Any) -> None:
        """Count a row whose partners had not come at the end of the stream."""
        with self._lock:
            self.unpaireds[operator] += 1
        self._tell("unpaired", row)

    def _totals(self) -> tuple[int, int, int]:
        """Return how many were skipped, late and unpaired, while others go on counting."""
        with self._lock:
            return self.skips.total(), self.lates.total(), self.unpaireds.total()

    def _seconds(self) -> float:
        """Return the time of the run's clock, in seconds; here it stands still."""
        return 0.0

    def _tell(self, reason: str, what: Any, error: Exception | None = None) -> None:
        """Report a dropped row; here to no one."""


class DeadLetterCounts(RowCounts):
    """Counts, and makes dead letters of what it counts; their recipient is the run's first lane."""

    def __init__(self, dead_letters: DeadLetters, now: Callable[[], float]) -> None:
        super().__init__()
        self.lane: Any = None
        self._dead_letters = dead_letters
        self._clock = now

    def _seconds(self) -> float:
        """Return the time of the system's clock, in seconds."""
        return self._clock()

    def _tell(self, reason: str, what: Any, error: Exception | None = None) -> None:
        self._dead_letters.post(what, self.lane, None, reason, error)
