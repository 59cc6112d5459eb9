"""Operators in worker processes: the same outputs, errors and counts as without."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from callboard import ActorSystem
from callboard.streams import (
    FailedRow,
    Graph,
    GraphError,
    SideOutput,
    StreamError,
    Watermark,
    entry,
)
from tests.streams.in_processes import (
    Picky,
    is_even,
    options,
    process_of,
    refuse_seven,
    run,
    tripled,
)
from tests.streams.process_oracles import check_failures, check_graph, with_fixtures
from tests.streams.random_graphs import Case, cases, fragile_chains, rows
from tests.streams.shapes import Chain

pytestmark = pytest.mark.usefixtures("importable")


@pytest.fixture(scope="module")
def system(root: Path) -> Iterator[ActorSystem]:
    with pytest.MonkeyPatch.context() as patched, ActorSystem(processes=2) as made:
        patched.syspath_prepend(str(root))  # where the processes find this module
        yield made


class Marked:
    """Shows failures, and the watermarks among them."""

    def receive(self, failed: FailedRow) -> list[Any]:
        return [failed.serial]

    def on_watermark(self, time: int) -> list[Any]:
        return [f"at {time}"]


class Adder:
    def __init__(self, amount: int) -> None:
        self.amount = amount

    def receive(self, row: int) -> list[int]:
        return [row + self.amount]


@given(cases(awaits=True), options)
@with_fixtures
def test_random_graphs_equal_a_sequential_run(
    system: ActorSystem, case: Case, options: dict[str, Any]
) -> None:
    check_graph(system, case, options)


@given(fragile_chains(), rows, options)
@with_fixtures
def test_random_failures_come_where_a_sequential_run_has_them(
    system: ActorSystem, chain: Chain, rows: list[Any], options: dict[str, Any]
) -> None:
    check_failures(system, chain, rows, options)


def test_functions_run_in_the_processes_and_not_after_here(system: ActorSystem) -> None:
    graph = entry("rows", int).map(process_of).collect()
    found = set(run(system, graph, range(2000), batch_size=10))
    assert len(found) == 2
    assert os.getpid() not in found
    here = entry("rows", int).here().map(process_of).collect()
    assert set(run(system, here, range(10))) == {os.getpid()}
    scanned = entry("rows", int).here().scan(0, lambda _, row: os.getpid()).collect()
    assert set(run(system, scanned, range(10))) == {os.getpid()}


def test_a_part_of_a_graph_runs_in_processes(system: ActorSystem) -> None:
    first = entry("rows", int).here().map(lambda row: [process_of(row)], name="first")
    second = first.in_processes().map(lambda row: [*row, process_of(row)], name="second")
    third = second.here().run_on("dynamic").map(lambda row: [*row, process_of(row)], name="third")
    made = system.run(third.collect())
    made.send("rows", range(10))
    for before, there, after in made.finish(timeout=60):
        assert before == after == os.getpid() != there
    assert made.describe().splitlines() == [
        "first    map, any worker: here()",
        "second   map, worker processes",
        "third    map, any worker: here()",
        "collect  collect, any worker: operators of the kind 'collect' stay in the program",
    ]


def test_statistics_say_why_operators_stay_in_the_program(system: ActorSystem) -> None:
    async def later(row: int) -> int:
        return row

    graph = (
        entry("rows", int)
        .map(abs, releases_gil=True, name="free")
        .max_workers(1)
        .map(tripled, name="limited")
        .map(later, in_flight=2, name="later")
        .run_on("dedicated")
        .map(tripled, name="dedicated")
        .run_on("dynamic")
        .count(name="count")
        .collect()
    )
    made = system.run(graph)
    made.send("rows", [1])
    made.finish(timeout=60)
    assert {one.name: one.reason for one in made.statistics().operators} == {
        "free": "it releases the interpreter's lock",
        "limited": "max_workers() limits it",
        "later": "it waits for answers",
        "dedicated": "its threading model is 'dedicated'",
        "count": "operators of the kind 'count' stay in the program",
        "collect": "operators of the kind 'collect' stay in the program",
    }


def test_operators_in_a_row_run_in_one_process(system: ActorSystem) -> None:
    graph = (
        entry("rows", int)
        .map(lambda row: (row, os.getpid()))
        .filter(lambda pair: pair[0] % 2)
        .flat_map(lambda pair: [pair[1] == os.getpid()])
        .collect()
    )
    assert run(system, graph, range(1000), batch_size=7) == [True] * 500


def test_statistics_count_the_rows_of_each_operator(system: ActorSystem) -> None:
    graph = (
        entry("rows", int)
        .filter(is_even, name="evens")
        .flat_map(lambda row: [row] * 3, name="thrice")
        .map(tripled, name="tripled")
        .collect()
    )
    made = system.run(graph, batch_size=16)
    made.send("rows", range(100))
    made.finish(timeout=60)
    found = {one.name: (one.rows_in, one.rows_out) for one in made.statistics().operators}
    assert found["evens"] == (100, 50)
    assert found["thrice"] == (50, 150)
    assert found["tripled"] == (150, 150)
    selectivities = {one.name: one.selectivity for one in made.statistics().operators}
    assert (selectivities["evens"], selectivities["thrice"]) == (0.5, 3.0)
    assert all(one.busy > 0 and one.cost > 0 for one in made.statistics().operators[:3])
    threads = {one.name: one.thread for one in made.statistics().operators}
    assert threads["evens"] == "worker processes"
    assert threads["collect"] == ""


def test_an_exception_comes_with_its_row_and_the_traceback_of_the_process(
    system: ActorSystem,
) -> None:
    graph = entry("rows", int).filter(lambda row: row > 3).map(refuse_seven, name="picky").collect()
    with pytest.raises(StreamError) as caught:
        run(system, graph, range(20), batch_size=2)
    assert (caught.value.operator, caught.value.serial, caught.value.row) == ("picky", 3, 7)
    assert isinstance(caught.value.__cause__, ValueError)
    assert "refuse_seven" in caught.value.__cause__.__notes__[0]


def test_an_exception_that_cannot_be_pickled_is_told_by_its_text(system: ActorSystem) -> None:
    def fail(_: int) -> None:
        error = ValueError("has a lock")
        error.lock = threading.Lock()  # type: ignore[attr-defined]
        raise error

    with pytest.raises(StreamError) as caught:
        run(system, entry("rows", int).map(fail).collect(), [1])
    assert str(caught.value.__cause__) == "ValueError: has a lock"


def test_skipped_rows_have_their_place_in_the_run(system: ActorSystem) -> None:
    graph = (
        entry("rows", int)
        .filter(lambda row: row != 2)
        .map(refuse_seven, name="picky", errors="skip")
        .collect()
    )
    made = system.run(graph, batch_size=3)
    made.send("rows", [*range(10), 7])
    assert made.finish(timeout=60) == [0, 1, 3, 4, 5, 6, 8, 9]
    found = [(one.operator, one.serial, one.row) for one in made.row_counts.failures]
    assert found == [("picky", 6, 7), ("picky", 9, 7)]


def test_failed_rows_and_side_outputs_leave_by_their_ports(system: ActorSystem) -> None:
    def divided(number: int) -> Any:
        return [SideOutput("small", number)] if number < 3 else [refuse_seven(number)]

    main = entry("rows", int).flat_map(divided, sides=["small"], errors="side", name="divided")
    graph = Graph(
        main.collect(name="main"),
        main.side("small").collect(name="small"),
        main.failures.collect(name="failed"),
    )
    found = run(system, graph, range(10), batch_size=4)
    assert found["main"] == [3, 4, 5, 6, 8, 9]
    assert found["small"] == [0, 1, 2]
    (failed,) = found["failed"]
    assert isinstance(failed, FailedRow)
    assert (failed.operator, failed.serial, failed.row) == ("divided", 7, 7)


def test_a_row_that_cannot_be_pickled_is_an_error_of_that_row(system: ActorSystem) -> None:
    sent = [1, 2, Picky(3), 4]
    doubled = entry("rows").map(lambda row: row * 2, name="doubled")
    made = system.run(doubled.collect())
    results = made.results()
    made.send("rows", sent)
    assert [next(results), next(results)] == [2, 4]
    with pytest.raises(StreamError, match="'doubled' failed at input 2") as caught:
        next(results)
    assert "this one stays" in str(caught.value.__cause__)


def test_a_row_that_cannot_be_pickled_can_be_skipped_or_put_aside(system: ActorSystem) -> None:
    sent = [1, Picky(2), 7, Watermark(5), Picky(3), 4, Watermark(6)]
    skipping = entry("rows").map(refuse_seven, name="picky", errors="skip")
    made = system.run(skipping.map(tripled).collect())
    made.send("rows", sent)
    assert made.finish(timeout=60) == [3, 12]
    assert sorted(one.serial for one in made.row_counts.failures) == [1, 2, 4]
    aside = entry("rows").map(refuse_seven, name="picky", errors="side")
    graph = Graph(
        aside.collect(name="main"), aside.failures.here().stateful(Marked).collect(name="failed")
    )
    found = run(system, graph, sent)
    assert found == {"main": [1, 4], "failed": [1, 2, "at 5", 4, "at 6"]}


def test_an_output_that_cannot_be_pickled_ends_the_run_behind_those_before(
    system: ActorSystem,
) -> None:
    def wrapped(number: int) -> Any:
        return threading.Lock() if number == 3 else number

    made = system.run(entry("rows", int).map(wrapped, name="wrapped").collect())
    results = made.results()
    made.send("rows", range(5))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(StreamError, match="'wrapped' failed") as caught:
        next(results)
    assert "cannot pickle" in str(caught.value.__cause__)


def test_a_function_that_cannot_be_pickled_is_an_error_of_the_run(system: ActorSystem) -> None:
    lock = threading.Lock()

    def locked(row: int) -> int:
        with lock:
            return row

    with pytest.raises(GraphError, match=r"'locked' cannot run in a worker process.*-> lock"):
        system.run(entry("rows", int).map(locked).collect())
    assert run(system, entry("rows", int).here().map(locked).collect(), [1]) == [1]


def test_an_object_of_a_class_is_made_in_each_process(system: ActorSystem) -> None:
    graph = entry("rows", int).stateless(Adder, 5).map(tripled).collect()
    assert run(system, graph, range(100), batch_size=9) == [(row + 5) * 3 for row in range(100)]


def test_messages_larger_than_the_shared_memory_pass(system: ActorSystem) -> None:
    sent = [bytes([at]) * 3_000_000 for at in range(5)]
    graph = entry("rows", bytes).map(lambda row: row + b"!").collect()
    assert run(system, graph, sent, batch_size=1) == [row + b"!" for row in sent]


def test_a_snapshot_goes_on_with_and_without_processes(system: ActorSystem) -> None:
    graph = entry("rows", int).filter(is_even, name="evens").map(tripled).collect()
    with ActorSystem() as alone:
        made = system.run(graph)
        made.send("rows", range(10))
        taken = made.snapshot()
        made.cancel()
        for then in (system, alone):
            again = then.run(graph, restore=taken)
            again.send("rows", range(10, 20))
            assert again.finish(timeout=60) == [row * 3 for row in range(0, 20, 2)]
