"""Outputs that are handed out as they are made, by a run that does not complete."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.core.errors import ConfigError
from callboard.scheduling.flow.threading_models import MODELS, Model
from callboard.streams import Graph, Results, Run, RunEnded, RunError, StreamError, entry
from tests.streams.taking import ROWS, Thread, feed, until_it_raises


@pytest.fixture(params=[1, 3], ids="{}-workers".format)
def system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    with ActorSystem(workers=request.param) as system:
        yield system


def fragile() -> Graph[list[int]]:
    return entry("x", int).map(lambda n: 100 // (50 - n) and n, name="divide").collect()


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("batch_size", [1, 7, 512])
def test_outputs_precede_a_failure(system: ActorSystem, model: Model, batch_size: int) -> None:
    run = system.run(fragile(), threading=model, batch_size=batch_size)
    got, error = until_it_raises(run.results(ROWS))
    assert got == list(range(50))
    assert isinstance(error, StreamError)
    assert (error.operator, error.serial) == ("divide", 50)
    assert isinstance(error.__cause__, ZeroDivisionError)


def test_a_taker_is_told_of_a_failure_each_time(system: ActorSystem) -> None:
    run = system.run(fragile(), batch_size=7)
    results = run.results()
    sender = Thread(lambda: feed(run))
    got, error = until_it_raises(results)
    assert (got, str(error)) == (list(range(50)), "operator 'divide' failed at input 50, 50")
    with pytest.raises(StreamError):
        sender.ends()
    assert str(until_it_raises(results)[1]) == str(error)
    assert results.take() == []


def failing(count: int, error: BaseException) -> Iterator[int]:
    yield from range(count)
    raise error


@pytest.mark.parametrize("count", [0, 1, 9, 10, 299])
@pytest.mark.parametrize("model", MODELS)
def test_rows_that_raise_end_the_run_when_what_came_before_is_handed_out(
    system: ActorSystem, model: Model, count: int
) -> None:
    numbers = entry("x", int)
    sums = numbers.fold(0, lambda total, n: total + n)
    both = Graph(numbers.collect(name="rows"), sums.collect(name="sum"))
    run = system.run(both, threading=model, batch_size=10)
    got, error = until_it_raises(run.results(failing(count, LookupError("no more")), name="rows"))
    assert got == list(range(count))
    assert isinstance(error, LookupError)
    assert (error.sent, error.unsent) == (count, [])  # type: ignore[attr-defined]
    with pytest.raises(RunEnded, match="cancelled"):
        run.finish(timeout=60)


def test_an_interrupt_in_the_rows_is_raised_at_once(system: ActorSystem) -> None:
    run = system.run(entry("x").collect(), threading="manual", batch_size=3)
    results = run.results(failing(5, KeyboardInterrupt()))
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyboardInterrupt) as raised:
        next(results)
    assert raised.value.sent == 3  # type: ignore[attr-defined]
    assert raised.value.unsent == [3, 4]  # type: ignore[attr-defined]
    assert list(results) == []


def test_an_interrupt_in_an_operator_of_the_caller_reaches_who_takes(system: ActorSystem) -> None:
    def interrupted(row: int) -> int:
        if row == 5:
            raise KeyboardInterrupt
        return row

    run = system.run(entry("x", int).map(interrupted).collect(), threading="manual", batch_size=1)
    results = run.results(range(10))
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    with pytest.raises(KeyboardInterrupt):
        next(results)


def test_somebody_else_may_finish_the_run_while_rows_are_given(system: ActorSystem) -> None:
    run = system.run(entry("x").collect(), threading="manual", batch_size=2)
    results = run.results(range(10))
    assert next(results) == 0
    assert run.finish() == [1]
    got, error = until_it_raises(results)
    assert (got, type(error)) == ([1], RunEnded)


def test_outputs_that_come_while_who_takes_looks_for_some_are_handed_out() -> None:
    class Late(Results[int]):
        looks = 0

        @property
        def pending(self) -> int:
            found = super().pending
            self.looks += 1
            if self.looks == 1:  # another thread sends, and finishes, just after this look
                run.send("x", [1, 2])
                run.finish(timeout=60)
            return found

    with ActorSystem() as system:
        run = system.run(entry("x", int).collect())
        assert list(Late(run._work, run.results()._buffer)) == [1, 2]


# --- nobody goes on -------------------------------------------------------------------------------


class Gate:
    """An operator that stays in one row until it is opened."""

    def __init__(self, at: int = 0) -> None:
        self.at = at
        self.entered, self.opened = threading.Event(), threading.Event()

    def __call__(self, row: int) -> int:
        if row == self.at:
            self.entered.set()
            assert self.opened.wait(60)
        return row


@pytest.mark.parametrize("model", MODELS)
def test_dropping_the_results_of_rows_cancels_the_run(system: ActorSystem, model: Model) -> None:
    for leave in (lambda results: results.close(), lambda results: None):
        run = system.run(entry("x").collect(), threading=model, batch_size=1, window=1)
        rows = iter(range(1000))
        results = run.results(rows)
        assert next(results) == 0
        leave(results)
        del results
        gc.collect()  # where references are not counted at once
        assert next(rows) < 10
        with pytest.raises(RunEnded, match="cancelled"):
            run.finish(timeout=60)


def test_results_of_rows_that_nobody_began_with_can_be_closed(system: ActorSystem) -> None:
    run = system.run(entry("x").collect())
    run.results(ROWS).close()
    with pytest.raises(RunEnded):
        run.send("x", [1])


def test_an_operator_that_is_stuck_holds_up_no_output_that_is_there_and_no_close() -> None:
    gate = Gate()
    numbers = entry("x", int)
    graph = Graph(numbers.collect(name="rows"), numbers.map(gate).collect(name="stuck"))
    with ActorSystem() as system:
        run = system.run(graph, threading="dedicated", batch_size=1, window=1)
        results = run.results(range(100), name="rows")
        assert next(results) == 0  # though there is no room for the next row
        assert gate.entered.wait(60)
        closing = Thread(results.close)
        closing.join(30)  # a finish() would wait for ever
        assert not closing.is_alive()
        gate.opened.set()


# --- bad input ------------------------------------------------------------------------------------


def test_the_collector_must_be_clear(system: ActorSystem) -> None:
    numbers = entry("x", int)
    names: list[Any] = [None, "third", 7, []]
    run: Run[Any] = system.run(Graph(numbers.collect(name="one"), numbers.collect(name="other")))
    for name in names:
        with pytest.raises(RunError, match="one of the collectors 'one', 'other', got") as raised:
            run.results(name=name)
        assert repr(name) in str(raised.value)
    run = system.run(numbers.to(print))
    with pytest.raises(RunError, match="has none"):
        run.results()


def test_a_collectors_results_have_one_iterator_at_a_time(system: ActorSystem) -> None:
    run = system.run(entry("x").collect(name="all"))
    first = run.results()
    for rows in (None, range(3)):
        with pytest.raises(RunError, match="the results\\(\\) of 'all' already have an iterator"):
            run.results(rows)
    run.send("x", [1])
    assert next(first) == 1


def test_a_limit_is_1_or_more(system: ActorSystem) -> None:
    run = system.run(entry("x").collect())
    with pytest.raises(ConfigError, match=r"limit .* got 0"):
        run.results(limit=0)


def test_rows_that_take_their_own_outputs_are_told_so(system: ActorSystem) -> None:
    def rows() -> Iterator[int]:
        yield 1
        yield next(results)

    results = system.run(fragile()).results(rows())
    with pytest.raises(RunError, match="one reader at a time, and another one, or the rows"):
        list(results)


def test_a_taker_hears_that_another_thread_has_closed(system: ActorSystem) -> None:
    begun, closed = threading.Event(), threading.Event()

    def rows() -> Iterator[int]:
        begun.set()
        assert closed.wait(60.0)
        yield from range(100, 1_000_000)

    results = system.run(fragile()).results(rows())
    taking = Thread(lambda: list(results))
    assert begun.wait(60.0)
    results.close()
    closed.set()
    with pytest.raises(RunError):
        taking.ends()
