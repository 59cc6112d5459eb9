"""Outputs that are handed out as they are made: which ones, and how many are buffered."""

from __future__ import annotations

import gc
import weakref
from collections import deque
from collections.abc import Iterator
from itertools import chain
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.streams import (
    Graph,
    GraphError,
    Run,
    RunEnded,
    RunError,
    RunTimeout,
    StreamError,
    entry,
)
from tests.streams.taking import EXPECTED, ROWS, Thread, feed, graph, until_it_raises


@pytest.fixture(params=[1, 3], ids="{}-workers".format)
def system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    with ActorSystem(workers=request.param) as system:
        yield system


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("batch_size", [1, 64, 512])
def test_given_rows_are_as_in_sequence(system: ActorSystem, model: Model, batch_size: int) -> None:
    run = system.run(graph(), threading=model, batch_size=batch_size)
    assert list(run.results(iter(ROWS))) == EXPECTED
    assert run.finish() == []


@pytest.mark.parametrize("model", ["dynamic", "dedicated", "assigned"])
@pytest.mark.parametrize("limit", [1, 10, 65_536])
def test_rows_of_a_thread_are_as_in_sequence(system: ActorSystem, model: Model, limit: int) -> None:
    run = system.run(graph(), threading=model, batch_size=7)
    results = run.results(limit=limit)
    sender = Thread(lambda: feed(run))
    assert list(results) == EXPECTED
    sender.ends()
    assert list(results) == []


def test_outputs_are_there_before_the_run_is_finished(system: ActorSystem) -> None:
    run = system.run(graph(), batch_size=16)
    results = run.results()
    run.send("x", ROWS[:100])
    first = [next(results) for _ in range(66)]
    assert first == EXPECTED[:66]
    run.send("x", ROWS[100:])
    assert first + run.finish(timeout=60) == EXPECTED


def test_take_gives_what_is_there_and_does_not_wait(system: ActorSystem) -> None:
    run = system.run(entry("x", int).map(abs).collect(), threading="manual")
    results = run.results()
    assert results.take() == []
    run.send("x", [-1, -2, -3])
    assert (results.pending, next(results), results.pending) == (3, 1, 2)
    run.send("x", [-4])
    assert results.take() == [2, 3, 4]
    assert results.take() == []
    assert run.finish() == []


def test_finish_returns_what_is_not_taken_and_leaves_it_to_be_taken(system: ActorSystem) -> None:
    run = system.run(entry("x").collect(), threading="manual")
    results = run.results()
    run.send("x", range(10))
    assert [next(results), next(results)] == [0, 1]
    assert run.finish() == list(range(2, 10))
    assert next(results) == 2
    assert run.finish() == list(range(3, 10))
    assert list(results) == list(range(3, 10))
    assert run.finish() == []


def test_results_may_be_asked_for_when_rows_have_come_already(system: ActorSystem) -> None:
    run = system.run(entry("x").collect())
    run.send("x", range(1000))
    assert run.finish(timeout=60) == list(range(1000))
    assert list(run.results()) == list(range(1000))


def test_several_collectors_have_results_each(system: ActorSystem) -> None:
    numbers = entry("x", int)
    both = Graph(
        numbers.collect(name="all"), numbers.filter(lambda n: n % 2 == 0).collect(name="even")
    )
    run = system.run(both)
    even = run.results(name="even")
    sender = Thread(lambda: feed(run))
    assert list(even) == ROWS[::2]
    assert sender.ends()["all"] == ROWS
    assert run.finish() == {"all": ROWS, "even": []}
    assert list(run.results(name="all")) == ROWS


def test_several_takers_get_each_output_once_and_in_order(system: ActorSystem) -> None:
    run = system.run(entry("x").collect(), batch_size=5)
    results = run.results(limit=50)
    takers = [Thread(lambda: list(results)) for _ in range(3)]
    feed(run)
    taken = [taker.ends() for taker in takers]
    assert all(rows == sorted(rows) for rows in taken)
    assert sorted(chain.from_iterable(taken)) == ROWS


@pytest.mark.parametrize("model", ["dynamic", "dedicated"])
def test_nothing_is_lost_between_workers_that_append_and_a_thread_that_takes(model: Model) -> None:
    with ActorSystem(workers=2) as system:
        run = system.run(entry("x").collect(), threading=model, batch_size=1)
        results = run.results(limit=10)
        sender = Thread(lambda: feed(run, range(30_000)))
        taken: list[int] = []
        while sender.is_alive():
            taken += results.take()
        sender.ends()
        assert taken + results.take() == list(range(30_000))


class Row:
    """A row that can be watched."""


def test_outputs_that_were_taken_are_freed(system: ActorSystem) -> None:
    """A long run keeps what is on its way, and no more."""
    seen: deque[weakref.ref[Row]] = deque()

    def rows() -> Iterator[Row]:
        for _ in range(5000):
            row = Row()
            seen.append(weakref.ref(row))
            yield row

    run = system.run(entry("x").collect(), batch_size=4, window=8)
    results = run.results(rows())
    most = 0
    for number, _ in enumerate(results):
        if number % 100 == 0:
            gc.collect(0)
            seen = deque(row for row in seen if row() is not None)
            most = max(most, len(seen), results.pending)
    assert most <= 2 * 4 * 8


# --- bounds ---------------------------------------------------------------------------------------


def test_a_sender_waits_until_somebody_takes(system: ActorSystem) -> None:
    run = system.run(entry("x").collect(name="all"), batch_size=1, window=1)
    results = run.results(limit=4)
    run.send("x", range(4))
    while results.pending < 4 or run._work.flow.done < 4:  # what is there is still on its way
        pass
    with pytest.raises(RunTimeout, match="4 outputs of 'all' wait to be taken") as raised:
        run.send("x", range(4, 100), timeout=0.05)
    assert (raised.value.sent, raised.value.unsent) == (0, [4])
    sender = Thread(lambda: run.send("x", range(4, 100)))
    assert [next(results) for _ in range(100)] == list(range(100))
    sender.ends()
    assert run.finish(timeout=60) == []


def test_no_more_than_the_limit_and_what_is_on_its_way_waits(system: ActorSystem) -> None:
    run = system.run(entry("x").collect(), batch_size=8, window=4)
    results = run.results(limit=100)
    sender = Thread(lambda: feed(run))
    most = 0
    for _ in results:
        most = max(most, results.pending)
    sender.ends()
    assert 0 < most < 100 + 8 * 4


def test_finish_does_not_wait_for_takers_and_ends_a_sender_that_does(system: ActorSystem) -> None:
    run = system.run(entry("x").collect(), batch_size=1, window=1)
    results = run.results(limit=2)
    sender = Thread(lambda: run.send("x", range(10)))
    while results.pending < 2:
        pass
    rows = run.finish(timeout=60)
    with pytest.raises(RunEnded) as raised:
        sender.ends()
    assert rows == list(range(raised.value.sent))
    assert list(results) == rows


@pytest.mark.parametrize("end", [Run.cancel, lambda run: run._work.system.stop()])
def test_waiting_senders_and_takers_are_told_of_the_end(end: Any) -> None:
    with ActorSystem() as system:
        full, empty = (system.run(entry("x").collect(), batch_size=1, window=1) for _ in range(2))
        full_results = full.results(limit=1)
        waiting = [Thread(lambda: full.send("x", range(10))), Thread(lambda: next(empty.results()))]
        while not full_results.pending:
            pass
        for run in (full, empty):
            end(run)
        for thread in waiting:
            with pytest.raises(RunEnded):
                thread.ends()


def test_closed_results_let_senders_go_on_and_leave_the_rest_to_finish(system: ActorSystem) -> None:
    run = system.run(entry("x").collect(), batch_size=1, window=1)
    results = run.results(limit=2)
    sender = Thread(lambda: run.send("x", range(100)))
    assert next(results) == 0
    results.close()
    sender.ends()
    assert run.finish(timeout=60) == list(range(1, 100))


# --- several entries ------------------------------------------------------------------------------


def two() -> Graph[list[Any]]:
    return entry("a").union(entry("b")).collect()


def test_rows_of_several_entries_are_sent_in_turns_a_batch_of_each(system: ActorSystem) -> None:
    run = system.run(two(), batch_size=2)
    both = {"a": range(5), "b": iter(range(10, 13))}
    assert list(run.results(both)) == [0, 1, 10, 11, 2, 3, 12, 4]
    run = system.run(two(), batch_size=2)
    assert list(run.results({"b": [1, 2, 3]})) == [1, 2, 3]


def test_pairs_of_an_entry_and_rows_are_sent_as_they_come(system: ActorSystem) -> None:
    run = system.run(two(), batch_size=2)
    pairs = [("b", [1, 2, 3]), ("a", [4]), ("b", []), ("b", iter([5]))]
    assert list(run.results(iter(pairs))) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("rows", "error", "says"),
    [
        ({"c": [1]}, GraphError, "no entry 'c'"),
        ({"a": "text"}, TypeError, "results\\(\\) expects an iterable of rows, got one str"),
        (7, RunError, "rows by their entries, got 7"),
        ("text", RunError, "rows by their entries, got 'text'"),
    ],
)
def test_an_unknown_entry_is_refused(system: ActorSystem, rows: Any, error: Any, says: str) -> None:
    run = system.run(two())
    with pytest.raises(error, match=says):
        run.results(rows)
    assert list(run.results({"a": [1]})) == [1]


@pytest.mark.parametrize(
    ("pair", "error", "says"),
    [
        (("c", [2]), GraphError, "no entry 'c'"),
        ((1, 2, 3), RunError, "pairs of an entry and rows, got (1, 2, 3)"),
        (("a", 7), TypeError, "iterable of rows, got 7"),
    ],
)
def test_a_wrong_pair_ends_the_run(system: ActorSystem, pair: Any, error: Any, says: str) -> None:
    run = system.run(two())
    got, raised = until_it_raises(run.results([("a", [1]), pair]))
    assert got == [1]
    assert isinstance(raised, error)
    assert says in str(raised)
    with pytest.raises(RunEnded):
        run.finish()


def test_in_a_window_of_one_outputs_precede_the_next_row(system: ActorSystem) -> None:
    heard: list[str] = []

    def calls() -> Iterator[int]:
        for row in range(5):
            heard.append(f"row {row}")
            yield row

    graph = entry("x", int).map(lambda row: row * 2).collect()
    for output in system.run(graph, batch_size=1, window=1).results(calls()):
        heard.append(f"output {output}")
    assert heard == [said for row in range(5) for said in (f"row {row}", f"output {row * 2}")]


def test_in_a_window_of_one_a_failure_precedes_the_next_row(system: ActorSystem) -> None:
    rows = iter([1, 0, 2])
    graph = entry("x", int).map(lambda row: 1 / row).collect()
    results = system.run(graph, batch_size=1, window=1).results(rows)
    assert next(results) == 1
    with pytest.raises(StreamError) as raised:
        next(results)
    assert raised.value.sent == 2
    assert [*rows] == [2]
