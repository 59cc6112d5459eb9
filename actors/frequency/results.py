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
    """Keys above a share of all elements, the most frequent first.

    Those in `guaranteed` are above it, and those in `possible` may be: their counts are, but for
    the errors. No key that is above it is in neither.
    """

    guaranteed: list[Counted]
    possible: list[Counted]
