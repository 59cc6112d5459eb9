"""Why operators of running graphs do nothing: each reason is provoked and reported."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from callboard import Actor, ActorSystem, DrainTimeout, Future, as_concurrent
from callboard.core.threads.interpreter import has_gil
from callboard.streams import Equal, RunTimeout, entry
from callboard.testing import ManualSystem
from tests.observing.actors import Holder, Passage
from tests.waiting import until


def reason(system: ActorSystem, name: str) -> tuple[str, str]:
    wait = system.why_waiting(stuck_after=1000).of(name)
    return wait.reason, wait.words


def test_an_operator_without_rows_has_no_input() -> None:
    rows = entry("rows", int)
    with ActorSystem(workers=1) as system, system.run(rows.map(abs, name="absolute").collect()):
        assert reason(system, "absolute") == ("no input", "has no input")
    assert system.why_waiting() == ()


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


TWO = entry("trades"), entry("quotes")


@pytest.mark.parametrize("threading", ["dynamic", "manual"])
@pytest.mark.parametrize("name", ["merge", "join", "join in lanes", "join_asof", "zip"])
def test_an_operator_that_holds_rows_names_the_silent_input(threading: Any, name: str) -> None:
    trades, quotes = TWO[0], TWO[1].map(dict, name="quotes as dicts")
    equal = Equal("k")
    streams: dict[str, Any] = {
        "merge": trades.merge(quotes, by="t"),
        "join": trades.join(quotes, by="t", within=5, where=equal),
        "join in lanes": trades.join(quotes, by="t", within=5, where=equal, lanes=2),
        "join_asof": trades.join_asof(quotes, by="t", where=equal),
        "zip": trades.zip(quotes),
    }
    with ActorSystem(workers=2) as system:
        run = system.run(streams[name].collect(), threading=threading)
        run.send("trades", ({"t": n, "k": n} for n in range(2_000)))
        system.drain(60)
        held = "holds 2,000 rows until 'quotes as dicts' sends a row or a watermark"
        assert [wait.words for wait in system.why_waiting() if wait.reason == "input"] == [held]
        run.send("quotes", [{"t": 3_000, "k": n} for n in range(3_000)])
        system.drain(60)
        left = [wait.words for wait in system.why_waiting() if wait.reason == "input"]
        assert len(left) == 1
        assert left[0].endswith(" rows until 'trades' sends a row or a watermark")
        run.cancel()


def test_rows_of_an_as_of_join_that_wait_for_later_partners_are_held() -> None:
    with ActorSystem(workers=2) as system:
        join = TWO[0].join_asof(TWO[1], by=int, nearest="after", name="join")
        run = system.run(join.collect())
        run.send("trades", [1, 2, 3])
        run.send("quotes", [0])
        system.drain(60)
        held = "holds 3 rows until 'quotes' sends a row or a watermark"
        assert reason(system, "join") == ("input", held)
        run.send("trades", [4])
        run.send("quotes", [4])
        system.drain(60)
        held = "holds 1 row until 'quotes' sends a row or a watermark"
        assert reason(system, "join") == ("input", held)
        run.send("quotes", [6])
        system.drain(60)
        held = "holds 1 row until 'trades' sends a row or a watermark"
        assert reason(system, "join") == ("input", held)
        run.cancel()


def test_a_merge_waits_for_the_input_that_is_furthest_behind_and_not_for_idle_ones() -> None:
    a, b, c = (entry(name, int) for name in "abc")
    with ManualSystem() as system:
        run = system.run(a.merge(b, c, by=int, idle_timeout=5, name="merge").collect())

        def words() -> str:
            system.run_until(lambda: False, timeout=0)
            return system.why_waiting().of("merge").words

        run.send("a", [1, 2, 5])
        assert words() == "holds 3 rows until 'b' and 'c' send a row or a watermark"
        run.send("b", [4])
        run.send("c", [2])
        assert words() == "holds 2 rows until 'c' sends a row or a watermark"
        system.advance(10)
        assert words() == "has no input"
        run.cancel()


def test_a_drain_that_times_out_names_the_operator_that_holds_rows() -> None:
    passage = Passage()
    with ActorSystem(workers=2) as system:
        run = system.run(TWO[0].zip(TWO[1], name="pairs").collect())
        run.send("trades", [1, 2])
        system.drain(60)
        system.spawn(Holder).tell(passage)
        assert passage.entered.wait(30)
        with pytest.raises(DrainTimeout, match="\npairs holds 2 rows until 'quotes' sends a row"):
            system.drain(0.0)
        passage.leave.set()
        run.cancel()


def test_batches_that_are_held_count_their_rows() -> None:
    pa = pytest.importorskip("pyarrow")
    batch = pa.record_batch({"t": [1, 2, 3]})
    with ActorSystem(workers=2) as system:
        run = system.run(TWO[0].merge_batches(TWO[1], by="t", name="merge").collect())
        run.send("trades", [batch, pa.record_batch({"t": [4, 5, 6]})])
        system.drain(60)
        held = "holds 6 rows until 'quotes' sends a row or a watermark"
        assert reason(system, "merge") == ("input", held)
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
        answer = Future[int]()
        run = system.run(rows.ask(system.spawn(Later, answer), name="one").collect())
        run.send("rows", [1])
        until(lambda: reason(system, "one") == ("answer", "waits for 1 answer"))
        with pytest.raises(RunTimeout, match=r"'one' waits for 1 answer$"):
            run.finish(timeout=0.01)
        answer.set_result(7)
        assert run.finish(timeout=60) == [7]


@pytest.mark.parametrize("kind", ["map", "ask"])
def test_a_window_full_of_waiting_rows_names_its_operator(kind: str) -> None:
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
