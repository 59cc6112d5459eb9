"""The answers of summaries."""

from __future__ import annotations

from typing import Any, NamedTuple

__all__ = ["Counted", "Frequent"]


class Counted(NamedTuple):
    """A key, which occurred at most `count`, and at least `count - error` times."""

    key: Any
    count: int  # type: ignore[assignment]  # hides a tuple's method, which has no use here
    error: int


class Frequent(NamedTuple):
    """Keys above the support, the most frequent first.

    The keys in `guaranteed` are above the support. Those in `possible` may be: their counts are
    above it, but their counts minus their errors are not. Every key above the support is in one of
    the two.
    """

    guaranteed: list[Counted]
    possible: list[Counted]
