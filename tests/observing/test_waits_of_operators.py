"""Why operators of running graphs do nothing: each reason is provoked, and told."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from callboard import Actor, ActorSystem, DrainTimeout, Future, as_concurrent
from callboard.core.threads.interpreter import has_gil
from callboard.streams import entry
from tests.observing.actors import Holder, Passage
from tests.waiting import until


def reason(system: ActorSystem, name: str) -> tuple[str, str]:
    wait = system.waits(stuck_after=1000).of(name)
    return wait.reason, wait.words


def test_an_operator_without_rows_has_no_input() -> None:
    rows = entry("rows", int)
    with ActorSystem(workers=1) as system, system.run(rows.map(abs, name="absolute").collect()):
        assert reason(system, "absolute") == ("no input", "has no input")
    assert system.waits() == ()


def stopping_at(passage: Passage, seen: list[int]) -> Any:
    """Make a graph of an operator that stops in each row, behind one that does not."""

    def stay(row: int) -> int:
        seen.append(row)
        passage.pass_through()
        return row

    rows = entry("rows", int)
    return rows.map(abs, name="absolute").map(stay, name="stay").collect()


@pytest.mark.skipif(not has_gil(), reason="several workers may be at work on an operator")
def test_rows_that_wait_while_the_heuristic_has_sent_the_workers_elsewhere() -> None:
    passage, seen = Passage(), list[int]()
    with ActorSystem(workers=1) as system:
        run = system.run(stopping_at(passage, seen), batch_size=1, window=4)
        run.send("rows", [1])
        assert passage.entered.wait(30)
        assert reason(system, "stay") == ("running", "has 1 worker at work")
        assert reason(system, "absolute") == ("no input", "has no input")
        run.send("rows", [2, 3, 4])
        held = "has about 3 rows that wait, while the workers are at 'stay'"
        assert reason(system, "absolute") == ("heuristic", held)
        full = "wait: the window of 4 batches is full, by the operator 'stay'"
        assert reason(system, "rows to come in") == ("window", full)
        with pytest.raises(DrainTimeout) as late:
            system.drain(0.0)
        passage.leave.set()
        assert run.finish(timeout=60) == [1, 2, 3, 4]
    assert f"\nabsolute {held}" in str(late.value)
    assert "\nstay has 1 worker at work" in str(late.value)
    assert f"\nrows to come in {full}" in str(late.value)


def test_an_operator_that_has_the_most_lanes_it_may_have() -> None:
    passage, seen = Passage(), list[int]()
    with ActorSystem(workers=1) as system:
        graph = stopping_at(passage, seen)
        run = system.run(graph, threading="dedicated", batch_size=1, window=4)
        run.send("rows", [1, 2, 3])
        assert passage.entered.wait(30)  # before it took the row, that waits like the next one
        most = "has 1 worker at work, the most that may be, and about 2 rows wait"
        until(lambda: reason(system, "stay") == ("lanes", most))
        assert seen == [1]
        passage.leave.set()
        assert run.finish(timeout=60) == [1, 2, 3]


def test_an_operator_whose_lane_has_no_worker_is_queued() -> None:
    passage = Passage()
    rows = entry("rows", int)
    with ActorSystem(workers=1) as system:
        run = system.run(rows.map(abs, name="absolute").collect())
        system.spawn(Holder).tell(passage)
        assert passage.entered.wait(30)
        run.send("rows", [1])
        assert reason(system, "absolute") == ("queued", "has about 1 rows that wait for a worker")
        passage.leave.set()
        assert run.finish(timeout=60) == [1]


def test_an_operator_that_rests_says_for_how_long() -> None:
    rows = entry("rows", int)
    with ActorSystem(workers=1) as system:
        run = system.run(rows.throttle(1e-6, name="slow").collect(), batch_size=1)
        run.send("rows", [1, 2])
        until(lambda: reason(system, "slow")[0] == "timer")
        assert reason(system, "slow")[1].startswith("rests for ")
        run.cancel()


class Later(Actor[int]):
    """Answers when the test says so."""

    def __init__(self, answer: Future[int]) -> None:
        self.answer = answer

    def receive(self, message: int) -> Future[int]:
        return self.answer


def test_an_operator_that_waits_for_answers_says_for_how_many() -> None:
    answer = Future[int]()
    rows = entry("rows", int)
    with ActorSystem(workers=1) as system:
        later = system.spawn(Later, answer)
        run = system.run(rows.ask(later, in_flight=2, name="asks").collect())
        run.send("rows", [1, 2, 3])
        until(lambda: reason(system, "asks") == ("answer", "waits for 2 answers"))
        answer.set_result(7)
        assert run.finish(timeout=60) == [7, 7, 7]


@pytest.mark.parametrize("kind", ["map", "ask"])
def test_a_window_that_is_full_of_rows_that_wait_for_answers_names_their_operator(
    kind: str,
) -> None:
    answer = Future[int]()

    async def wait(row: int) -> int:
        return await asyncio.wrap_future(as_concurrent(answer))

    rows = entry("rows", int)
    with ActorSystem(workers=1) as system:
        if kind == "map":
            held = rows.map(wait, in_flight=2, name="holds")
        else:
            held = rows.ask(system.spawn(Later, answer), in_flight=2, name="holds")
        run = system.run(held.map(abs, name="absolute").collect(), batch_size=1, window=4)
        run.send("rows", [1, 2, 3, 4])
        until(lambda: reason(system, "holds") == ("answer", "waits for 2 answers"))
        full = "wait: the window of 4 batches is full, by the operator 'holds'"
        assert reason(system, "rows to come in") == ("window", full)
        answer.set_result(7)
        assert run.finish(timeout=60) == [7, 7, 7, 7]
