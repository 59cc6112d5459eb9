"""Adapts the number of a router's routees to the length of their queues."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from callboard.core import checks
from callboard.core.handles import public_names
from callboard.core.text import safe_repr


@dataclass(frozen=True, slots=True)
class AutoScale:
    """The bounds of a router's number of routees, and when the number changes.

    Args:
        min_size: The smallest number of routees.
        max_size: The largest number.
        period: Every `period` seconds the router checks how many messages wait for a routee on
            average.
        high: With more than this in `after_looks` checks in a row, it spawns half as many routees
            again.
        low: With fewer than this, it removes one.
        after_looks: See `high`.
    """

    __dir__ = public_names

    min_size: int = 1
    max_size: int = 8
    period: float = 0.1
    high: float = 4.0
    low: float = 0.5
    after_looks: int = 3

    def __post_init__(self) -> None:
        """Check the bounds. Raises ValueError."""
        checks.whole("min_size of an AutoScale", self.min_size)
        checks.whole("max_size of an AutoScale", self.max_size, self.min_size)
        checks.seconds("the period of an elastic router", self.period, zero=False)
        checks.whole("after_looks of an AutoScale", self.after_looks)
        low = checks.finite("low", self.low)
        if not 0 <= low < checks.finite("high", self.high):
            raise ValueError(
                f"an elastic router expects 0 <= low < high, got {self.low!r} and {self.high!r}"
            )

    @classmethod
    def _of(cls, value: Any, period: float = 0.1) -> AutoScale:
        """Make one of a pair (min_size, max_size), with this `period`. Raises TypeError."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, tuple) or len(value) != 2:
            raise TypeError(
                f"expected an AutoScale or a pair (min_size, max_size), got {safe_repr(value)}"
            )
        return cls(*value, period=period)

    def _refuse(self, what: str, count: int) -> None:
        """Raise ValueError for a number at first that is not within the bounds."""
        if not self.min_size <= count <= self.max_size:
            raise ValueError(
                f"{what}={count} is not within elastic=({self.min_size}, {self.max_size})"
            )


class Level:
    """The number of routees that an elastic router is to have, one look after the other."""

    def __init__(self, elastic: AutoScale) -> None:
        self._elastic = elastic
        self._long = 0  # looks on end that found long queues
        self._short = 0

    def decide(self, routees: int, waiting: int) -> int:
        """Return how many routees are wanted for the messages that wait."""
        elastic = self._elastic
        self._long = self._long + 1 if waiting > elastic.high * routees else 0
        self._short = self._short + 1 if waiting < elastic.low * routees else 0
        if self._long >= elastic.after_looks:
            self._long = 0
            return min(elastic.max_size, routees + max(1, routees // 2))
        if self._short >= elastic.after_looks:
            self._short = 0
            return max(elastic.min_size, routees - 1)
        return min(max(routees, elastic.min_size), elastic.max_size)
