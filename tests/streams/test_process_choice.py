"""`processes="auto"`: rounds run in the program or in worker processes, with the same outputs."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from callboard import ActorSystem, ConfigError
from callboard.core.threads.interpreter import has_gil
from callboard.streams import Watermark, entry
from callboard.streams.processes.choice import ChosenSegment
from callboard.worker_processes import processes as running
from tests.streams.in_processes import Picky, options, process_of, refuse_seven, run, tripled
from tests.streams.process_oracles import check_failures, check_graph, with_fixtures
from tests.streams.random_graphs import Case, cases, fragile_chains, rows
from tests.streams.shapes import Chain

pytestmark = [
    pytest.mark.usefixtures("importable"),
    pytest.mark.skipif(not has_gil(), reason="threads run Python side by side here"),
]


@pytest.fixture(scope="module")
def system(root: Path) -> Iterator[ActorSystem]:
    with pytest.MonkeyPatch.context() as patched:
        patched.syspath_prepend(str(root))
        patched.setattr(running, "usable_cores", lambda: 2)
        with ActorSystem(processes="auto") as made:
            yield made


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have segments change their place after each second round that they see."""

    def choose(segment: ChosenSegment) -> None:
        seen[segment] = seen.get(segment, 0) + 1
        if seen[segment] % 2 == 0:
            segment.is_here = not segment.is_here

    seen: dict[ChosenSegment, int] = {}
    monkeypatch.setattr(ChosenSegment, "_choose", choose)


@pytest.fixture
def always_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have segments go to the processes after their first round."""

    def choose(segment: ChosenSegment) -> None:
        segment.is_here = False

    monkeypatch.setattr(ChosenSegment, "_choose", choose)


@with_fixtures
@given(cases(awaits=True), options)
def test_random_graphs_that_change_their_place_equal_a_sequential_run(
    system: ActorSystem, changes: None, case: Case, options: dict[str, Any]
) -> None:
    check_graph(system, case, options)


@with_fixtures
@given(fragile_chains(), rows, options)
def test_random_failures_come_where_a_sequential_run_has_them(
    system: ActorSystem, changes: None, chain: Chain, rows: list[Any], options: dict[str, Any]
) -> None:
    check_failures(system, chain, rows, options)


def test_rounds_run_here_first_and_then_in_the_processes(
    system: ActorSystem, always_away: None
) -> None:
    found = run(system, entry("rows", int).map(process_of).collect(), range(100), batch_size=1)
    assert found[0] == os.getpid()
    assert os.getpid() not in found[-50:]


def test_costs_decide_where_a_segment_runs(system: ActorSystem) -> None:
    segment = ChosenSegment(running.WorkerProcesses("none", 2, 1 << 20), b"", [], 2)

    def look(work: float, hand_over: float) -> bool:
        for _ in range(30):
            segment._size.add(1000, 1)
            segment._work.add(work * 1000, 1000)
            segment._encoding.add((hand_over - 60) * 1000, 1000)
            segment._choose()
        return segment.is_here

    assert look(work=100, hand_over=100)
    assert look(work=500, hand_over=200)  # (500 + 400) / 2 is close: the program is not measured
    assert not look(work=3000, hand_over=200)
    assert not look(work=500, hand_over=200)  # nor are the processes
    assert look(work=200, hand_over=200)
    segment._work.add(5_000_000, 1000)
    assert segment.reason.endswith("us of work a row, 0.2 us for its hand-over")


def test_a_row_or_an_output_that_cannot_be_pickled_keeps_a_segment_here(
    system: ActorSystem, always_away: None
) -> None:
    doubled = entry("rows").map(lambda row: getattr(row, "value", row), name="values")
    made = system.run(doubled.collect(), batch_size=1)
    made.send("rows", [1, 2, Picky(3), 4, Watermark(1), 5])
    assert made.finish(timeout=60) == [1, 2, 3, 4, 5]
    values = made.statistics().operators[0]
    assert (values.thread, values.reason) == ("", "a row cannot be pickled")
    made = system.run(entry("rows").map(lambda _: threading.Lock(), name="locks").collect())
    made.send("rows", range(100))
    assert len(made.finish(timeout=60)) == 100
    (locks, _) = made.statistics().operators
    assert locks.thread == ""
    assert locks.reason.endswith("cannot be pickled")


def test_a_function_that_cannot_be_pickled_stays_here(
    system: ActorSystem, always_away: None
) -> None:
    lock = threading.Lock()

    def locked(row: int) -> int:
        with lock:
            return os.getpid()

    def last(_: Any, row: int) -> int:
        with lock:
            return row

    made = system.run(entry("rows", int).map(locked).scan(None, last, name="last").collect())
    made.send("rows", range(100))
    assert set(made.finish(timeout=60)) == {os.getpid()}
    for one in made.statistics().operators[:2]:
        assert (one.thread, one.reason) == (
            "",
            "its function cannot be pickled: cannot pickle '_thread.lock' object",
        )


def test_statistics_say_where_operators_run_and_why(system: ActorSystem) -> None:
    def long(row: int) -> int:
        return sum(range(20_000)) + row

    graph = entry("rows", int).map(long, name="long").map(refuse_seven, errors="skip").collect()
    made = system.run(graph)
    made.send("rows", range(400))
    made.finish(timeout=60)
    (long_one, picky, collect) = made.statistics().operators
    assert long_one.thread == picky.thread == "worker processes"
    assert "us of work a row" in long_one.reason
    assert collect.thread == ""
    assert collect.reason == "operators of the kind 'collect' stay in the program"
    assert (long_one.rows_in, picky.rows_in, picky.rows_out) == (400, 400, 400)


def test_on_one_core_there_are_no_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "usable_cores", lambda: 1)
    with ActorSystem(processes="auto") as system:
        made = system.run(entry("rows", int).map(tripled).collect())
        made.send("rows", [1])
        assert made.finish(timeout=60) == [3]
        assert made.statistics().operators[0].reason == "there is one usable core"


def test_another_word_is_refused() -> None:
    with pytest.raises(
        ConfigError, match="processes must be a whole number or \"auto\", got 'all'"
    ):
        ActorSystem(processes="all")
