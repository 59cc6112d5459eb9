"""Which operators run in worker processes, and which in the program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.streams import (
    Equal,
    SessionWindow,
    SlidingWindow,
    Stream,
    TumblingWindow,
    Watermark,
    entry,
)

pytestmark = pytest.mark.usefixtures("importable")

ZERO = datetime(2024, 3, 30, tzinfo=UTC)
SENT = [*range(0, 60, 3), Watermark(40), *range(50, 200, 7), 13, Watermark(180)]


@pytest.fixture(scope="module")
def system(root: Path) -> Iterator[ActorSystem]:
    """A system with two worker processes."""
    with pytest.MonkeyPatch.context() as patched, ActorSystem(processes=2) as made:
        patched.syspath_prepend(str(root))  # where the processes find this module
        yield made


class Each:
    def receive(self, row: int) -> list[int]:
        return [row]


class Waiting:
    """Holds rows until a watermark has reached them, or the end."""

    def __init__(self) -> None:
        self.rows: list[int] = []

    def receive(self, row: int) -> None:
        self.rows.append(row)

    def on_watermark(self, time: int) -> list[int]:
        ready = sorted(row for row in self.rows if row <= time)
        self.rows = [row for row in self.rows if row > time]
        return ready

    def on_final(self) -> list[int]:
        return self.rows


def add(total: int, row: int) -> int:
    return total + row


def same(row: int) -> int:
    return row


def remainder(row: int) -> int:
    return row % 5


def hour_of(row: int) -> datetime:
    return ZERO + timedelta(hours=row)


def is_above(left: int, right: int) -> bool:
    return left > right


async def awaited(row: int) -> int:
    return row


DAYS = TumblingWindow(days=1, zone="Europe/Paris", by=hour_of)
STATEFUL: dict[str, Callable[[Any], Stream[Any]]] = {
    "scan": lambda rows: rows.scan(0, add),
    "fold": lambda rows: rows.fold(0, add),
    "reduce": lambda rows: rows.reduce(sum, every=4),
    "stateful": lambda rows: rows.stateful(Each),
    "stateful with watermarks": lambda rows: rows.stateful(Waiting),
    "top_k": lambda rows: rows.top_k(3, remainder, every=7),
    "frequent": lambda rows: rows.frequent(remainder, epsilon=0.1, every=9),
    "distinct": lambda rows: rows.distinct(remainder),
    "distinct rows": lambda rows: rows.distinct(),
    "windows of rows": lambda rows: rows.window(SlidingWindow(5, 2), sum),
    "windows of lists": lambda rows: rows.window(TumblingWindow(5)),
    "tumbling windows": lambda rows: rows.window(TumblingWindow(20, by=same), sum),
    "ordered windows": lambda rows: rows.window(TumblingWindow(20, by=same, ordered=True), sum),
    "sliding windows": lambda rows: rows.window(SlidingWindow(20, 10, by=same), sum),
    "sessions": lambda rows: rows.window(SessionWindow(6, by=same), sum),
    "late rows": lambda rows: rows.window(SessionWindow(6, by=same), sum, late="include"),
}
STATELESS: dict[str, Callable[[Any], Stream[Any]]] = {
    "map": lambda rows: rows.map(same),
    "filter": lambda rows: rows.filter(remainder),
    "flat_map": lambda rows: rows.flat_map(range),
    "stateless": lambda rows: rows.stateless(Each),
    "map_batches": lambda rows: rows.map_batches(same, releases_gil=False),
    "unbatch": lambda rows: rows.batch(3).unbatch(),
    "branch": lambda rows: rows.branch(remainder)[0],
}
HERE: dict[str, Callable[[Any], Stream[Any]]] = {
    "releases_gil": lambda rows: rows.map(same, releases_gil=True),
    "map_batches": lambda rows: rows.map_batches(same),
    "max_workers": lambda rows: rows.max_workers(1).map(same),
    "a thread": lambda rows: rows.run_on("dedicated").map(same),
    "here": lambda rows: rows.here().map(same),
    "async": lambda rows: rows.map(awaited, in_flight=3),
    "an object": lambda rows: rows.stateless(Each()),
    "count": lambda rows: rows.count(),
    "batch": lambda rows: rows.batch(3),
    "sample": lambda rows: rows.sample(every=3),
    "watermarks": lambda rows: rows.watermarks(same, delay_threshold=1),
    "union": lambda rows: rows.union(entry("others", int)),
    "zip": lambda rows: rows.zip(entry("others", int)),
    "merge": lambda rows: rows.merge(entry("others", int), by=same),
    "join": lambda rows: rows.join(entry("others", int), by=same, within=5),
    "join by value": lambda rows: rows.join(
        entry("others", int), by=same, within=5, where=Equal(remainder), combine=add
    ),
    "semi join": lambda rows: rows.join(
        entry("others", int), by=same, within=5, where=is_above, how="semi"
    ),
    "join_asof": lambda rows: rows.join_asof(entry("others", int), by=same),
}


def places(system: ActorSystem, stream: Stream[Any]) -> set[str]:
    """Run a graph, compare its outputs, and return where its operators ran, but for its sink."""
    graph = stream.collect(name="sink")
    run = system.run(graph, batch_size=4)
    sent = {name: SENT if name == "rows" else [30, 31, 100, 190] for name in graph.entries}
    for name, rows in sent.items():
        run.send(name, rows, timeout=60)
    assert run.finish(timeout=60) == graph.run_sequentially(sent)
    return {one.thread for one in run.statistics().operators if one.name != "sink"}


@pytest.mark.parametrize("name", STATELESS)
def test_operators_with_functions_run_in_processes(system: ActorSystem, name: str) -> None:
    assert "worker processes" in places(system, STATELESS[name](entry("rows", int)))


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("name", STATEFUL)
def test_operators_with_states_run_in_processes(
    system: ActorSystem, name: str, keyed: bool
) -> None:
    rows: Any = entry("rows", int)
    stream = STATEFUL[name](rows.key_by(lambda row: row % 3) if keyed else rows)
    assert places(system, stream) == {"worker processes"}


def test_windows_of_days_run_in_processes(system: ActorSystem) -> None:
    rows = entry("hours", int).key_by(remainder).window(DAYS, sum)
    assert places(system, rows) == {"worker processes"}


def test_joins_by_functions_compare_in_processes(system: ActorSystem) -> None:
    rows = entry("rows", int).join(entry("others", int), by=same, within=5, where=is_above)
    assert places(system, rows) == {"worker processes", ""}


@pytest.mark.parametrize("name", HERE)
def test_other_operators_stay_in_the_program(system: ActorSystem, name: str) -> None:
    assert "worker processes" not in places(system, HERE[name](entry("rows", int)))
