"""Threads, actors, callers of operators and manual systems that take outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from callboard import Actor, ActorSystem
from callboard.streams import Results, RunError, StreamError, entry
from callboard.testing import ManualSystem
from tests.streams.taking import EXPECTED, ROWS, Thread, feed, graph


@pytest.fixture(params=[1, 3], ids="{}-workers".format)
def system(request: pytest.FixtureRequest) -> Iterator[ActorSystem]:
    with ActorSystem(workers=request.param) as system:
        yield system


def test_in_a_manual_system_nobody_waits_for_what_cannot_come(manual: ManualSystem) -> None:
    run = manual.run(entry("x").collect(), batch_size=1)
    results = run.results(limit=3)
    with pytest.raises(RunError, match="nothing is ready"):
        next(results)
    for row in range(3):
        run.send("x", [row])
        manual.run_until_idle()
    with pytest.raises(RunError, match="nothing is ready: 3 outputs of 'collect' wait") as cut:
        run.send("x", [3])
    assert cut.value.unsent == [3]
    assert results.take() == [0, 1, 2]


def test_outputs_made_during_a_wait_for_the_window_count_for_the_limit() -> None:
    with ManualSystem() as system:
        run = system.run(entry("x").collect(), batch_size=1, window=1)
        results = run.results(limit=1)
        with pytest.raises(RunError, match="nothing is ready: 1 outputs of 'collect' wait") as cut:
            run.send("x", [0, 1])  # the second waits for the window, and then is one too many
        assert (cut.value.sent, cut.value.unsent) == (1, [1])
        assert results.take() == [0]


def test_the_caller_of_manual_operators_does_not_wait_for_itself(system: ActorSystem) -> None:
    run = system.run(entry("x").collect(), threading="manual", batch_size=2)
    results = run.results(limit=4)
    with pytest.raises(RunError, match="no row is on its way"):
        next(results)
    with pytest.raises(RunError, match="4 outputs of 'collect' wait to be taken") as raised:
        run.send("x", range(10))
    assert (raised.value.sent, raised.value.unsent) == (4, [4, 5])
    assert results.take() == [0, 1, 2, 3]
    run.send("x", [4])
    assert run.finish() == [4]


def test_the_caller_waits_for_what_another_thread_has_of_its_rows(system: ActorSystem) -> None:
    stream = entry("x", int).map(lambda n: n + 1).new_thread().map(lambda n: n * 2)
    run = system.run(stream.collect(), threading="manual", batch_size=1)
    results = run.results()
    run.send("x", range(5))
    assert [next(results) for _ in range(5)] == [2, 4, 6, 8, 10]
    with pytest.raises(RunError, match="no row is on its way"):
        next(results)
    run.finish(timeout=60)


@pytest.mark.parametrize(
    "call",
    [
        lambda run, results: next(results),
        lambda run, results: results.take(),
        lambda run, results: run.results(),
    ],
)
def test_manual_operators_refuse_another_thread(system: ActorSystem, call: Any) -> None:
    run = system.run(entry("x").collect(), threading="manual")
    results = run.results()
    run.send("x", [1])
    with pytest.raises(RunError, match="called first"):
        Thread(lambda: call(run, results)).ends()
    assert run.finish() == [1]


def test_an_operator_does_not_wait_for_its_own_run(system: ActorSystem) -> None:
    found: list[Results[Any]] = []
    run = system.run(entry("x").map(lambda _: next(found[0])).collect())
    found.append(run.results())
    run.send("x", [1])
    with pytest.raises(StreamError) as raised:
        run.finish(timeout=60)
    assert "in an operator of" in str(raised.value.__cause__)


class Taker(Actor[Any]):
    """Does with a run in its handler what it is told."""

    def receive(self, message: Callable[[ActorSystem], Any]) -> Any:
        return message(self.system)


def test_an_actor_that_gives_rows_works_on_them() -> None:
    with ActorSystem(workers=1) as system:  # the worker is the actor's
        taken = system.spawn(Taker).ask(
            lambda system: list(system.run(graph(), batch_size=1, window=2).results(ROWS[:200]))
        )
        assert taken.result(timeout=60) == graph().run_sequentially({"x": ROWS[:200]})


def test_an_actor_takes_what_it_has_sent_and_does_not_wait_for_others() -> None:
    def take(system: ActorSystem) -> Any:
        run = system.run(entry("x").collect(), batch_size=1)
        results = run.results(limit=5)
        run.send("x", range(5))
        taken = [next(results) for _ in range(5)]
        with pytest.raises(RunError, match="blocks its worker: no row is on its way"):
            next(results)
        with pytest.raises(RunError, match=r"blocks its worker: \d+ outputs"):
            run.send("x", range(1000))
        run.cancel()
        return taken

    with ActorSystem(workers=1) as system:
        assert system.spawn(Taker).ask(take).result(timeout=60) == [0, 1, 2, 3, 4]


def test_a_dedicated_actor_waits_for_what_others_send() -> None:
    with ActorSystem(workers=1) as system:
        run = system.run(graph())
        results = run.results(limit=100)
        taken = system.spawn(Taker, dedicated=True).ask(lambda _: list(results))
        feed(run)
        assert taken.result(timeout=60) == EXPECTED
