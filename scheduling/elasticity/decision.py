"""A decision about the level, and the words of its reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Decision:
    """The level of the next period, and why, in words."""

    level: int
    reason: str


def workers(count: int) -> str:
    """Return "1 worker", "2 workers"."""
    return f"{count} worker" if count == 1 else f"{count} workers"


def are(count: int) -> str:
    """Return "is" for one worker, else "are"."""
    return "is" if count == 1 else "are"


def works(count: int) -> str:
    """Return "works" for one worker, else "work"."""
    return "works" if count == 1 else "work"


def stays(count: int) -> str:
    """Return "1 worker stays", "2 workers stay"."""
    return f"{workers(count)} {'stays' if count == 1 else 'stay'}"


def number(value: float) -> str:
    """Return a number with three figures or more: 0.132, 13.2, 210,000."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def rate(throughput: float) -> str:
    """Return a throughput, in messages and rows a second."""
    return f"{number(throughput)} a second"


def stuck(names: Sequence[str]) -> str:
    """Say that workers did not return, so that nothing is learned and nothing changed."""
    which = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    return f"not all workers that were to be suspended have come back ({which})"
