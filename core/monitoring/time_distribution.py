"""A distribution of times, as it was at one moment."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeDistribution:
    """A distribution of times. Its methods return seconds.

    Times are counted in buckets whose bounds differ by at most 12.5%. A result is the upper bound
    of a bucket, so it is at most 12.5% too long.
    """

    total_ns: int
    """The sum of all times, in nanoseconds."""
    buckets: tuple[tuple[int, int], ...]
    """(upper bound in nanoseconds, count), ascending, of the buckets with any time."""

    @property
    def count(self) -> int:
        """The number of times."""
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
        """Return the number of times in buckets up to a bound in nanoseconds."""
        return sum(count for bound, count in self.buckets if bound <= bound_ns)

    def since(self, before: TimeDistribution) -> TimeDistribution:
        """Return the distribution of the times since an earlier reading."""
        old = dict(before.buckets)
        left = ((bound, count - old.get(bound, 0)) for bound, count in self.buckets)
        return TimeDistribution(
            max(self.total_ns - before.total_ns, 0),
            tuple((bound, count) for bound, count in left if count > 0),
        )


NO_TIMES = TimeDistribution(0, ())
"""The empty distribution."""
