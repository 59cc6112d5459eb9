"""Decisions about the level, with their reasons in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from callboard.scheduling.elasticity.measurement import Measurement


@dataclass(frozen=True)
class Decision:
    """The level of the next period, and the reason in words."""

    level: int
    reason: str


def workers(count: int) -> str:
    """Return "1 worker", "2 workers"."""
    return f"{count} worker" if count == 1 else f"{count} workers"


def are(count: int) -> str:
    """Return "is" for one worker, else "are"."""
    return "is" if count == 1 else "are"


def number(value: float) -> str:
    """Return a number with at least three figures: 0.132, 13.2, 210,000."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rate(throughput: float) -> str:
    """Return a throughput, in messages and rows a second."""
    return f"{number(throughput)} a second"


def did(now: Measurement) -> str:
    """Say what a level did: "2 workers did 13.2 a second"."""
    return f"{workers(now.level)} did {rate(now.throughput)}"


def stuck(names: Sequence[str]) -> str:
    """Say that workers have not come back, so that the period shows nothing."""
    which = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"not all workers that were to be suspended have come back ({which})"
