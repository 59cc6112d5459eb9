"""A run that is cancelled by one of its own functions, for instance when it has seen enough."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.streams import Graph, Run, RunEnded, entry

THREADING: list[Any] = ["dynamic", "manual", "dedicated", "assigned"]
threadings = pytest.mark.parametrize("threading", THREADING)


class Enough:
    """Cancels its run at the third row; `returned` says that this did not wait."""

    def __init__(self) -> None:
        self.run: Run[Any]
        self.rows: list[int] = []
        self.returned = threading.Event()

    def __call__(self, row: int) -> int:
        self.rows.append(row)
        if row == 3:
            self.run.cancel(timeout=30)
            self.returned.set()
        return row


def run_of(system: ActorSystem, enough: Enough, graph: Graph[Any], **options: Any) -> Run[Any]:
    enough.run = system.run(graph, batch_size=1, **options)
    return enough.run


@threadings
@pytest.mark.parametrize("as_sink", [False, True])
def test_it_ends_and_the_call_does_not_wait_for_itself(threading: Any, as_sink: bool) -> None:
    enough = Enough()
    rows = entry("rows", int)
    graph: Graph[Any] = rows.to(enough) if as_sink else rows.map(enough).collect()
    with ActorSystem(workers=1) as system:  # so rows are handled in their order
        run = run_of(system, enough, graph, threading=threading)
        with pytest.raises(RunEnded):
            run.send("rows", range(10_000), timeout=60)
        with pytest.raises(RunEnded):
            run.finish(timeout=60)
        assert enough.returned.is_set()
        assert enough.rows == [0, 1, 2, 3]
        with pytest.raises(RunEnded):
            run.send("rows", [])


def test_a_taker_of_its_results_gets_the_outputs_before_and_then_the_end() -> None:
    enough = Enough()
    taken: list[int] = []
    with ActorSystem(workers=2) as system:
        run = run_of(system, enough, entry("rows", int).map(enough).collect())
        results = run.results()
        run.send("rows", [0, 1, 2])
        taken += [next(results) for _ in range(3)]
        run.send("rows", [3])
        with pytest.raises(RunEnded, match="cancelled"):
            next(results)
    assert taken == [0, 1, 2]


def test_the_iterator_that_sends_rows_ends() -> None:
    enough = Enough()
    with ActorSystem(workers=1) as system:
        run = run_of(system, enough, entry("rows", int).map(enough).collect())
        with pytest.raises(RunEnded):
            list(run.results(iter(range(10_000))))
    assert enough.rows == [0, 1, 2, 3]


def test_a_sender_that_waits_for_room_is_told_how_many_rows_went_in() -> None:
    entered, full = threading.Event(), threading.Event()
    enough = Enough()

    def wait(row: int) -> int:
        entered.set()
        assert full.wait(60)
        return enough(row)

    def rows() -> Iterator[int]:
        yield from (3, 4, 5, 6)
        assert entered.wait(60)
        full.set()  # the window has no room for what comes
        yield 7

    with ActorSystem(workers=1) as system:
        run = run_of(system, enough, entry("rows", int).map(wait).collect(), window=4)
        with pytest.raises(RunEnded) as raised:
            run.send("rows", rows(), timeout=60)
    assert (raised.value.sent, raised.value.unsent) == (4, [7])
    assert enough.rows == [3]


@pytest.mark.parametrize("end", [Run.finish, Run.cancel])
def test_the_next_call_from_elsewhere_closes_its_files(end: Any, tmp_path: Path) -> None:
    enough = Enough()
    path = tmp_path / "rows.txt"
    graph = entry("rows", int).map(enough).to(path)
    with ActorSystem(workers=2) as system:
        run = run_of(system, enough, graph)
        run.send("rows", [0, 1, 2])
        run.send("rows", [3])
        try:
            end(run, timeout=60)
        except RunEnded:
            assert end is Run.finish
        system.run(entry("rows").to(path)).cancel()  # or another run has the file


def test_the_systems_end_closes_its_files(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    enough = Enough()
    path = tmp_path / "rows.txt"
    with ActorSystem(workers=2) as system:
        run = run_of(system, enough, entry("rows", int).map(enough).to(path))
        run.send("rows", [3])
        assert enough.returned.wait(60)
    with ActorSystem() as system:
        system.run(entry("rows").to(path)).cancel()  # or another run has the file
    assert repr(run).startswith("<Run ended")
    assert "never finished" not in caplog.text


class Endless:
    """Yields outputs for ever, and notes that it is under way, and its end."""

    def __init__(self, under_way: threading.Event, ended: threading.Event) -> None:
        self.under_way, self.ended = under_way, ended

    def receive(self, row: int) -> Iterator[int]:
        try:
            while True:
                yield row
                self.under_way.set()
        finally:
            self.ended.set()


@pytest.mark.parametrize("operator", ["flat_map", "stateless", "stateful", "keyed"])
def test_a_cancel_ends_a_generator_of_outputs_that_has_no_end(operator: str) -> None:
    under_way, ended = threading.Event(), threading.Event()
    rows = entry("rows", int)
    graph = {
        "flat_map": lambda: rows.flat_map(Endless(under_way, ended).receive),
        "stateless": lambda: rows.stateless(Endless, under_way, ended),
        "stateful": lambda: rows.stateful(Endless, under_way, ended),
        "keyed": lambda: rows.key_by(lambda row: row).stateful(Endless, under_way, ended),
    }[operator]()
    with ActorSystem(workers=1) as system:
        run = system.run(graph.to(print))
        run.send("rows", [1])
        assert under_way.wait(60)
        run.cancel(timeout=60)
        assert ended.wait(60)
