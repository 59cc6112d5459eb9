"""A distribution of times as it was read: how many of them were how long."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeDistribution:
    """How many times were how long. Its methods answer in seconds.

    Times are counted in buckets whose bounds are at most 12.5% apart. So an answer is the upper
    bound of the bucket that the time was in, at most 12.5% too long.
    """

    total_ns: int
    """The sum of all times, in nanoseconds."""
    buckets: tuple[tuple[int, int], ...]
    """(upper bound in nanoseconds, count), ascending, of the buckets with any time."""

    @property
    def count(self) -> int:
        """How many times there are."""
        return sum(count for _, count in self.buckets)

    @property
    def mean(self) -> float | None:
        """The mean; None without any time."""
        count = self.count
        return self.total_ns / 1e9 / count if count else None

    @property
    def p50(self) -> float | None:
        """The median; None without any time."""
        return self.percentile(50)

    @property
    def p99(self) -> float | None:
        """The time that one in a hundred exceeds; None without any time."""
        return self.percentile(99)

    def percentile(self, percent: float) -> float | None:
        """Return the time that `percent` of all times do not exceed; None without any time."""
        left = self.count * percent / 100
        for bound, count in self.buckets:
            left -= count
            if left <= 0:
                return bound / 1e9
        return self.buckets[-1][0] / 1e9 if self.buckets else None

    def at_most(self, bound_ns: int) -> int:
        """Return how many times are in buckets up to a bound, in nanoseconds."""
        return sum(count for bound, count in self.buckets if bound <= bound_ns)

    def since(self, before: TimeDistribution) -> TimeDistribution:
        """Return the times that came after an earlier reading of the same ones."""
        old = dict(before.buckets)
        left = ((bound, count - old.get(bound, 0)) for bound, count in self.buckets)
        return TimeDistribution(
            max(self.total_ns - before.total_ns, 0),
            tuple((bound, count) for bound, count in left if count > 0),
        )


NO_TIMES = TimeDistribution(0, ())
"""The distribution without any time."""
