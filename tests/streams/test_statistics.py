"""What a run's statistics make of its counters."""

from __future__ import annotations

from typing import Any, cast

from callboard.streams.running.statistics import collect
from callboard.streams.running.tally import Tally


class Counters:
    """A flow that has ended; round k took k microseconds, and waited for as long before."""

    admitted = done = 10

    def operators(self) -> list[Any]:
        return []

    def times(self) -> list[tuple[int, int, int, int]]:
        return [(serial, 0, serial * 1000, serial * 2000) for serial in range(1, 11)]


def test_latencies_are_of_the_middle_of_the_stream_from_the_20th_to_the_80th_percentile() -> None:
    statistics = collect(cast("Any", Counters()), Tally(), 10, 2.0, homes=[], programs=[])
    assert statistics.throughput == 5.0
    assert statistics.processing is not None
    assert statistics.end_to_end is not None
    assert statistics.processing.markers == 6  # rounds 3 to 8
    assert statistics.processing.longest == 8e-6
    assert statistics.processing.median == 5e-6
    assert statistics.end_to_end.longest == 16e-6
    assert sum(count for _, count in statistics.processing.histogram) == 6
