"""Operators that wait for answers: in order, up to a limit, and without blocking workers."""

from __future__ import annotations

import random
import threading
from typing import Any

import pytest

from callboard import Actor, ActorSystem, Future
from callboard.streams import Graph, RunError, RunTimeout, Stream, Watermark
from callboard.testing import ManualSystem
from tests.streams.answering import ROWS, Doubling, Holding, double, rows

WANTED = [row * 2 for row in ROWS]


def asking(system: ActorSystem) -> dict[str, Stream[int]]:
    ref = system.spawn(Doubling)
    return {
        "ask": rows.ask(ref, in_flight=7),
        "one at a time": rows.ask(ref, in_flight=1),
        "await": rows.map(double, in_flight=7),
        "await a future": rows.map(lambda row: ref.ask(row), in_flight=7),
    }


WAYS = ["ask", "one at a time", "await", "await a future"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("threading", ["dynamic", "dedicated", "assigned", "manual"])
def test_answers_come_in_the_order_of_rows(way: str, threading: Any) -> None:
    with ActorSystem(workers=2) as system:
        graph = asking(system)[way].collect()
        for size in (1, 64):
            run = system.run(graph, batch_size=size, threading=threading)
            run.send("rows", ROWS)
            assert run.finish(timeout=60) == WANTED


@pytest.mark.parametrize("way", WAYS)
def test_a_sequential_run_waits_for_answers(way: str) -> None:
    with ActorSystem(workers=2) as system:
        graph = asking(system)[way].collect()
        assert graph.run_sequentially({"rows": ROWS}) == WANTED


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("seed", range(5))
def test_a_manual_system_replays_them(way: str, seed: int) -> None:
    traces = []
    for _ in range(2):
        with ManualSystem(seed) as system:
            run = system.run(asking(system)[way].collect(), batch_size=9)
            run.send("rows", ROWS[:50])
            assert run.finish() == WANTED[:50]
            traces.append(list(map(str, system.trace)))
    assert traces[0] == traces[1]


def test_answers_that_come_in_any_order_leave_in_that_of_rows(manual: ManualSystem) -> None:
    ref = manual.spawn(Holding)
    run = manual.run(rows.ask(ref, in_flight=10).collect(), batch_size=4)
    run.send("rows", ROWS[:25])
    outputs = run.results()
    for begun in (10, 10, 5):
        manual.run_until_idle()
        assert len(ref.ask("asked").result()) == begun
        ref.tell("answer")
    assert run.finish() == WANTED[:25]
    assert outputs.take() == WANTED[:25]
    assert ref.ask("most").result() == 10


def test_rows_behind_a_slow_one_are_asked_meanwhile_and_leave_behind_it() -> None:
    with ManualSystem() as system:
        futures: dict[int, Future[int]] = {}

        class Slow(Actor[int]):
            def receive(self, message: int) -> Any:
                futures[message] = Future()
                if message:
                    futures[message].set_result(message)
                return futures[message]

        run = system.run(rows.ask(system.spawn(Slow), in_flight=2).collect(), batch_size=1)
        outputs = run.results()
        run.send("rows", range(9))
        system.run_until_idle()
        assert sorted(futures) == list(range(9))
        assert outputs.take() == []
        futures[0].set_result(0)
        system.run_until_idle()
        assert outputs.take() == list(range(9))
        run.finish()


def test_no_worker_waits_with_them() -> None:
    futures: list[Future[int]] = []
    asked = threading.Event()

    class Slow(Actor[int]):
        def receive(self, message: int) -> Future[int]:
            futures.append(Future())
            if len(futures) == 3:
                asked.set()
            return futures[-1]

    with ActorSystem(workers=1) as system:
        slow = system.spawn(Slow)
        run = system.run(rows.ask(slow).collect())
        run.send("rows", range(3))
        assert asked.wait(60)
        assert system.spawn(Doubling).ask(4).result(60) == 8  # by the only worker
        with pytest.raises(RunTimeout, match="'ask' waits for 3 answers"):
            run.finish(timeout=0.0)
        for number, future in enumerate(futures):
            future.set_result(number)
        assert run.finish(timeout=60) == [0, 1, 2]


def test_a_full_window_holds_the_sender_up(manual: ManualSystem) -> None:
    ref = manual.spawn(Holding)
    run = manual.run(rows.ask(ref, in_flight=3).collect(), batch_size=1, window=4)
    run.send("rows", range(4))
    with pytest.raises(RunTimeout) as cut:
        run.send("rows", [4], timeout=0.0)
    assert cut.value.unsent == [4]
    run.cancel()


def test_watermarks_keep_their_places() -> None:
    seen: list[Any] = []

    class See:
        def receive(self, row: int) -> None:
            seen.append(row)

        def on_watermark(self, time: int) -> None:
            seen.append(Watermark(time))

    mixed: list[Any] = [0, Watermark(1), 2, 3, Watermark(3), Watermark(4), 5]
    wanted = [each if isinstance(each, Watermark) else each * 2 for each in mixed]
    with ManualSystem() as system:
        ref = system.spawn(Holding)
        graph: Graph[Any] = rows.ask(ref).stateful(See).collect()
        run = system.run(graph, batch_size=2)
        run.send("rows", mixed)
        system.run_until_idle()
        ref.tell("answer")
        run.finish()
    assert seen == wanted


def test_branches_meet_again_row_by_row() -> None:
    with ActorSystem(workers=2) as system:
        ref = system.spawn(Doubling)
        both = rows.ask(ref).union(rows.map(lambda row: -row), rows.map(double, in_flight=3))
        wanted = [each for row in ROWS for each in (row * 2, -row, row * 2)]
        run = system.run(both.collect(), batch_size=16)
        run.send("rows", ROWS)
        assert run.finish(timeout=60) == wanted
        assert both.collect().run_sequentially({"rows": ROWS}) == wanted


def test_a_row_and_its_answer_are_combined() -> None:
    with ActorSystem(workers=1) as system:
        ref = system.spawn(Doubling)
        graph = rows.ask(ref, combine=lambda row, answer: (row, answer)).collect()
        run = system.run(graph)
        run.send("rows", [1, 2])
        assert run.finish(timeout=60) == [(1, 2), (2, 4)]


def test_the_description_says_how_many_wait() -> None:
    graph = rows.map(double, in_flight=64).collect()
    assert "double   map, 64 at a time, of rows, one worker at a time" in graph.describe()


def test_rows_are_counted_as_they_leave() -> None:
    with ActorSystem(workers=2) as system:
        run = system.run(rows.ask(system.spawn(Doubling)).collect(), batch_size=10)
        run.send("rows", ROWS)
        run.finish(timeout=60)
        (asked,) = [each for each in run.statistics().operators if each.name == "ask"]
        assert (asked.rows_in, asked.rows_out) == (500, 500)


@pytest.mark.parametrize("seed", range(10))
def test_random_graphs_with_answers_give_what_one_worker_gives(seed: int) -> None:
    wanted = random_graph(seed, None).run_sequentially({"rows": ROWS[:60]})
    with ManualSystem(seed) as system:
        graph = random_graph(seed, system.spawn(Doubling))
        run = system.run(graph, batch_size=1 + seed % 7, window=4)
        run.send("rows", ROWS[:60])
        assert run.finish() == wanted
    with ActorSystem(workers=2) as system:
        run = system.run(random_graph(seed, system.spawn(Doubling)), batch_size=7)
        run.send("rows", ROWS[:60])
        assert run.finish(timeout=60) == wanted


def random_graph(seed: int, ref: Any) -> Graph[Any]:
    """Make branches that meet again, with answers or, without a ref, with what these would be."""
    chance = random.Random(seed)

    def doubled(stream: Any, n: int) -> Any:
        if ref is None:
            return stream.map(lambda row: row * 2)
        return stream.ask(ref, in_flight=n) if n % 2 else stream.map(double, in_flight=n)

    def odd_ones(stream: Any, n: int) -> Any:
        return stream.filter(lambda row: row % (n + 1))

    def counted(stream: Any, n: int) -> Any:
        return stream.key_by(lambda row: row % n).count().map(lambda pair: pair[1])

    branches = []
    for _ in range(chance.randint(1, 3)):
        branch: Any = rows
        for _ in range(chance.randint(1, 3)):
            branch = chance.choice([doubled, doubled, odd_ones, counted])(
                branch, chance.randint(1, 5)
            )
        branches.append(branch)
    first, *others = branches
    graph: Graph[Any] = first.union(*others).collect() if others else first.collect()
    return graph


@pytest.mark.parametrize("workers", [1, 2])
def test_an_actor_that_would_hold_up_the_worker_of_the_asked_one_is_refused(workers: int) -> None:
    class Boss(Actor[Any]):
        def receive(self, message: Any) -> Any:
            run = self.system.run(rows.ask(message).collect())
            run.send("rows", range(3))
            try:
                return run.finish()
            finally:
                run.cancel()

    class Waits(Actor[Any]):
        async def receive(self, message: Any) -> Any:
            run = self.system.run(rows.ask(message).collect())
            run.send("rows", range(3))
            return await run.afinish()

    with ActorSystem(workers=workers) as system:
        asked = system.spawn(Doubling)
        with pytest.raises(RunError, match="await afinish"):
            system.spawn(Boss).ask(asked).result(60)
        assert system.spawn(Boss, dedicated=True).ask(asked).result(60) == [0, 2, 4]
        assert system.spawn(Waits).ask(asked).result(60) == [0, 2, 4]
