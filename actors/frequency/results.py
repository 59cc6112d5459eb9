"""The answers of summaries."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Counted", "Estimate", "Frequent"]


class Counted(NamedTuple):
    """A key that has a counter. It came at most `count` times, and at least `count - error`."""

    key: Any
    count: int  # type: ignore[assignment]  # a tuple's method of this name is of no use here
    error: int


class Estimate(NamedTuple):
    """How often a key came: at most `count` times, and at least `count - error` times."""

    count: int  # type: ignore[assignment]  # a tuple's method of this name is of no use here
    error: int


class Frequent(NamedTuple):
    """Keys whose part of all elements is above the support, the most frequent first.

    Those in `guaranteed` are above it. Those in `possible` may be: their counts are above it, and
    their counts less the errors are not. Each key above the support is in one of the two.
    """

    guaranteed: list[Counted]
    possible: list[Counted]
