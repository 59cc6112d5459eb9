"""A run's statistics as made from its counters."""

from __future__ import annotations

from typing import Any, cast

import pytest

from callboard import ActorSystem
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.streams import Graph, Run, SlidingWindow, TumblingWindow, Watermark, entry
from callboard.streams.running.row_counts import RowCounts
from callboard.streams.running.statistics import collect
from callboard.testing import ManualSystem


class Counters:
    """A flow that has ended; round k took k microseconds, and waited for as long before."""

    admitted = done = 10

    def operators(self) -> list[Any]:
        return []

    def times(self) -> list[tuple[int, int, int, int]]:
        return [(serial, 0, serial * 1000, serial * 2000) for serial in range(1, 11)]

    def event_times(self) -> tuple[None, dict[int, Any]]:
        return None, {}


def test_latencies_are_of_the_middle_of_the_stream_from_the_20th_to_the_80th_percentile() -> None:
    statistics = collect(cast("Any", Counters()), RowCounts(), 10, 2.0, places=[], programs=[])
    assert statistics.throughput == 5.0
    assert statistics.processing is not None
    assert statistics.end_to_end is not None
    assert statistics.processing.markers == 6  # rounds 3 to 8
    assert statistics.processing.longest == 8e-6
    assert statistics.processing.median == 5e-6
    assert statistics.end_to_end.longest == 16e-6
    assert sum(count for _, count in statistics.processing.histogram) == 6


class Total:
    """Puts out at some rows, at watermarks, and at the end."""

    def __init__(self) -> None:
        self.sum = 0

    def receive(self, row: int) -> list[Any] | None:
        self.sum += row
        return [row] if row % 2 else None

    def on_watermark(self, time: int) -> list[Any]:
        return [("at", time, self.sum)]

    def on_final(self) -> list[Any]:
        return [("end", self.sum)]


def fails_at_seven(row: int) -> int:
    return row // (row - 7)


ROWS = [*range(20), Watermark(20), Watermark(21), *range(21, 31)]
rows = entry("rows").map(abs, name="map")
timed = rows.watermarks(abs, every=4, name="watermarks")
keyed = timed.key_by(lambda row: row % 3, partitions=4)
late = keyed.window(SlidingWindow(10, 5, by=abs), len, late="side", name="windows")
failing = timed.filter(fails_at_seven, errors="side", name="filter")
GRAPH = Graph(
    keyed.stateful(Total, releases_gil=True, name="keyed").collect(name="totals"),
    keyed.window(
        TumblingWindow(10, by=fails_at_seven), len, errors="skip", name="failing"
    ).collect(),
    late.union(late.side("late"), name="union").collect(name="counts"),
    timed.merge(rows, by=abs, name="merge").stateful(Total, name="one").collect(name="merged"),
    failing.failures.collect(name="failures"),
    failing.collect(name="chosen"),
)


def check_counts(run: Run[Any]) -> None:
    run.send("rows", ROWS)
    result = run.finish(timeout=60)
    statistics = run.statistics()
    taken = {each.name: each.rows_in for each in statistics.operators}
    given = {each.name: each.rows_out for each in statistics.operators}
    assert statistics.rows == 30
    assert (taken["map"], given["map"], given["watermarks"]) == (30, 30, 30)
    assert (taken["keyed"], given["keyed"]) == (30, len(result["totals"]))
    assert (taken["windows"], given["windows"]) == (30, len(result["counts"]))
    assert (taken["merge"], given["merge"], taken["one"]) == (60, 60, 60)
    assert given["one"] == len(result["merged"])
    assert given["filter"] == len(result["chosen"]) + len(result["failures"])
    for name, outputs in result.items():
        assert (taken[name], given[name]) == (len(outputs), 0)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("batch_size", [1, 7, 512])
def test_watermarks_count_as_no_rows_but_outputs_do(model: Model, batch_size: int) -> None:
    for system in (ManualSystem(), ActorSystem(workers=2)):
        with system:
            check_counts(system.run(GRAPH, threading=model, batch_size=batch_size))
