"""Operators that wait for answers: in order, so many at a time, and no worker waits with them."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable
from typing import Any

import pytest

from callboard import Actor, ActorSystem, AskTimeout, Future, Supervision
from callboard.streams import (
    Failure,
    Graph,
    GraphError,
    RunEnded,
    RunError,
    RunTimeout,
    Stream,
    StreamError,
    Tally,
    Watermark,
    entry,
)
from callboard.testing import ManualSystem

rows = entry("rows")
RESUME = Supervision("resume")
ROWS = list(range(500))
WANTED = [row * 2 for row in ROWS]


class Doubling(Actor[int]):
    """Answers at once."""

    def receive(self, message: int) -> int:
        return message * 2


class Holding(Actor[Any]):
    """Answers when it is told to, the latest first."""

    def __init__(self) -> None:
        self.asked: list[tuple[int, Future[int]]] = []
        self.most = 0

    def receive(self, message: Any) -> Any:
        if message == "most":
            return self.most
        if message == "asked":
            return [row for row, _ in self.asked]
        if message == "answer":
            while self.asked:
                row, future = self.asked.pop()
                future.set_result(row * 2)
            return None
        answer: Future[int] = Future()
        self.asked.append((message, answer))
        self.most = max(self.most, len(self.asked))
        return answer


async def double(row: int) -> int:
    await asyncio.sleep(0)
    return row * 2


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


def test_answers_that_come_in_any_order_leave_in_that_of_rows() -> None:
    with ManualSystem() as system:
        ref = system.spawn(Holding)
        run = system.run(rows.ask(ref, in_flight=10).collect(), batch_size=4)
        run.send("rows", ROWS[:25])
        outputs = run.results()
        for begun in (10, 10, 5):
            system.run_until_idle()
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


def test_a_full_window_holds_the_sender_up() -> None:
    with ManualSystem() as system:
        ref = system.spawn(Holding)
        run = system.run(rows.ask(ref, in_flight=3).collect(), batch_size=1, window=4)
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


# --- errors -------------------------------------------------------------------------------------


class Failing(Actor[int]):
    """Fails at every tenth row."""

    def receive(self, message: int) -> int:
        if message % 10 == 7:
            raise ValueError(message)
        return message


async def fail(row: int) -> int:
    await asyncio.sleep(0)
    if row % 10 == 7:
        raise ValueError(row)
    return row


def failing(system: ActorSystem, way: str, **options: Any) -> Stream[int]:
    if way == "ask":
        ref = system.spawn(Failing, supervision=RESUME)
        return rows.ask(ref, in_flight=5, **options)
    return rows.map(fail, in_flight=5, **options)


def sequentially(_: ActorSystem, graph: Graph[Any], tally: Tally) -> Any:
    return graph.run_sequentially({"rows": ROWS[:40]}, tally=tally)


def on_workers(system: ActorSystem, graph: Graph[Any], tally: Tally) -> Any:
    run = system.run(graph, batch_size=6)
    try:
        run.send("rows", ROWS[:40])
        return run.finish(timeout=60)
    finally:
        tally.skips.update(run.tally.skips)


RUNS = pytest.mark.parametrize("runs", [sequentially, on_workers])


@RUNS
@pytest.mark.parametrize("way", ["ask", "await"])
@pytest.mark.filterwarnings("ignore")
def test_errors_end_the_run_or_are_skipped_or_go_to_the_side(
    runs: Callable[..., Any], way: str
) -> None:
    good = [row for row in ROWS[:40] if row % 10 != 7]
    with ActorSystem(workers=2) as system:
        seen: list[int] = []
        with pytest.raises(StreamError, match=r"failed at input 7, 7") as raised:
            runs(system, failing(system, way).to(seen.append), Tally())
        assert isinstance(raised.value.__cause__, ValueError)
        assert seen == ROWS[:7]
        tally = Tally()
        assert runs(system, failing(system, way, errors="skip").collect(), tally) == good
        assert sum(tally.skips.values()) == 4
        side = failing(system, way, errors="side")
        graph = Graph(side.collect(name="good"), side.failures.collect(name="bad"))
        found = runs(system, graph, Tally())
        assert found["good"] == good
        failures: list[Failure] = found["bad"]
        assert [failure.serial for failure in failures] == [7, 17, 27, 37]
        assert [failure.row for failure in failures] == [7, 17, 27, 37]


def test_a_row_that_never_gets_an_answer_behind_one_that_failed_holds_nothing_up() -> None:
    class Silent(Actor[int]):
        def receive(self, message: int) -> Any:
            if message == 2:
                raise ValueError(message)
            return message if message < 2 else Future()

    with ManualSystem() as system:
        seen: list[int] = []
        run = system.run(rows.ask(system.spawn(Silent)).to(seen.append), batch_size=2)
        run.send("rows", ROWS[:9])
        with pytest.raises(StreamError, match="failed at input 2"):
            run.finish()
        assert seen == [0, 1]


def test_a_failure_elsewhere_lets_rows_go_that_wait() -> None:
    def refuse(row: int) -> int:
        if row == 3:
            raise ValueError(row)
        return row

    with ManualSystem() as system:
        stuck = system.spawn(Holding)
        graph = Graph(rows.ask(stuck).collect(name="a"), rows.map(refuse).collect(name="b"))
        run = system.run(graph, batch_size=1)
        run.send("rows", range(6))
        system.run_until_idle()
        stuck.tell("answer")
        with pytest.raises(StreamError, match="'refuse' failed"):
            run.finish()


def test_a_cancelled_run_waits_for_no_answer_and_cancels_coroutines() -> None:
    begun, cancelled = threading.Semaphore(0), threading.Semaphore(0)

    async def never(row: int) -> None:
        begun.release()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.release()
            raise

    with ActorSystem(workers=1) as system:
        run = system.run(rows.map(never, in_flight=3).collect(), batch_size=2)
        run.send("rows", range(10))
        for _ in range(3):
            assert begun.acquire(timeout=60)
        run.cancel(timeout=60)
        for _ in range(3):
            assert cancelled.acquire(timeout=60)
        with pytest.raises(RunEnded):
            run.finish(timeout=60)
        held = system.spawn(Holding)
        run = system.run(rows.ask(held).collect())
        run.send("rows", range(10))
        run.cancel(timeout=60)
        held.ask("answer").result(60)  # answers that nobody waits for any more


def test_an_answer_may_come_when_its_run_is_gone() -> None:
    with ManualSystem() as system:
        held = system.spawn(Holding)
        run = system.run(rows.ask(held).collect())
        run.send("rows", range(10))
        system.run_until_idle()
        with pytest.warns(ResourceWarning, match="never finished"):
            del run
        system.run_until_idle()
        assert held.ask("answer").result() is None


# --- time limits, and trying again --------------------------------------------------------------


def test_an_answer_that_takes_too_long_is_an_error_of_its_row() -> None:
    async def stay(row: int) -> int:
        await asyncio.sleep(10 if row == 1 else 0)
        return row

    with ManualSystem() as system:
        held = system.spawn(Holding)
        run = system.run(rows.ask(held, timeout=2.0).collect())
        run.send("rows", [0])
        with pytest.raises(StreamError) as raised:
            run.finish()
        assert isinstance(raised.value.__cause__, AskTimeout)
        run = system.run(rows.map(stay, in_flight=2, timeout=2.0, errors="skip").collect())
        run.send("rows", [0, 1, 2])
        assert run.finish() == [0, 2]
        assert isinstance(run.tally.failures[0].error, TimeoutError)


@pytest.mark.parametrize("way", ["ask", "await"])
def test_what_failed_is_tried_again_after_pauses(way: str) -> None:
    tries: list[tuple[float, int]] = []

    def attempt(row: int) -> int:
        tries.append((round(system.now, 3), row))
        if sum(each == row for _, each in tries) < 3:
            raise ValueError(row)
        return row

    class Flaky(Actor[int]):
        def receive(self, message: int) -> int:
            return attempt(message)

    async def flaky(row: int) -> int:
        return attempt(row)

    def tried(**options: Any) -> Stream[int]:
        if way == "ask":
            return rows.ask(system.spawn(Flaky, supervision=RESUME), **options)
        return rows.map(flaky, in_flight=8, **options)

    with ManualSystem() as system:
        run = system.run(tried(retries=2, backoff=1.0, jitter=0).collect())
        run.send("rows", [5, 6])
        assert run.finish() == [5, 6]
        assert sorted(tries) == [(time, row) for time in (0.0, 1.0, 3.0) for row in (5, 6)]
        tries.clear()
        run = system.run(tried(retries=1, backoff=0.0).collect())
        run.send("rows", [5])
        with pytest.raises(StreamError) as raised:
            run.finish()
        assert isinstance(raised.value.__cause__, ValueError)
        assert len(tries) == 2


def test_a_sequential_run_tries_again_too() -> None:
    seen: list[int] = []

    class Flaky(Actor[int]):
        def receive(self, message: int) -> int:
            seen.append(message)
            if seen.count(message) < 3:
                raise ValueError(message)
            return message

    with ActorSystem(workers=1) as system:
        ref = system.spawn(Flaky, supervision=RESUME)
        graph = rows.ask(ref, in_flight=2, retries=2, backoff=0.001).collect()
        assert graph.run_sequentially({"rows": [1, 2, 3]}) == [1, 2, 3]
        assert sorted(seen) == [1, 1, 1, 2, 2, 2, 3, 3, 3]


# --- what is given ------------------------------------------------------------------------------


anything: Any = rows


def plain(row: int) -> int:
    return row


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: anything.ask(plain), r"ask\(\) takes a ref of an actor, not <function plain"),
        (lambda: anything.map(double), "nobody would await without in_flight="),
        (lambda: anything.map(double, in_flight=0), "in_flight is a whole number from 1"),
        (lambda: anything.map(plain, timeout=1.0), "timeout=, retries= and ordered= go with in_flight="),
        (lambda: anything.map(double, in_flight=1, timeout=0.0), "timeout is a number of seconds"),
        (lambda: anything.map(double, in_flight=1, retries=-1), "retries is a whole number"),
        (lambda: anything.map(double, in_flight=1, backoff=-1.0), "backoff is a number of seconds"),
        (lambda: anything.map(double, in_flight=1, releases_gil=True), "releases_gil= is for"),
    ],
)
def test_arguments_are_checked(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(GraphError, match=said):
        make()


def test_a_function_that_returns_nothing_to_await_is_an_error_of_its_row() -> None:
    with pytest.raises(StreamError) as raised:
        anything.map(plain, in_flight=2).collect().run_sequentially({"rows": [1]})
    assert "awaits what a function returns, not 1" in str(raised.value.__cause__)


def test_a_function_that_waits_for_a_result_is_told_what_to_use() -> None:
    with ActorSystem(workers=1) as system:
        ref = system.spawn(Doubling)

        def wait(row: int) -> Any:
            return ref.ask(row).result()

        async def wait_as_well(row: int) -> int:
            return Future[int]().result()

        run = system.run(rows.map(wait).collect())
        run.send("rows", [1])
        with pytest.raises(StreamError) as raised:
            run.finish(timeout=60)
        assert "in a function of a stream use stream.ask(ref, in_flight=n)" in str(
            raised.value.__cause__
        )
        run = system.run(rows.map(wait_as_well, in_flight=1).collect())
        run.send("rows", [1])
        with pytest.raises(StreamError) as raised:
            run.finish(timeout=60)
        assert "would block the event loop: use `await`" in str(raised.value.__cause__)


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
            return await run.finish_soon()

    with ActorSystem(workers=workers) as system:
        asked = system.spawn(Doubling)
        with pytest.raises(RunError, match="await finish_soon"):
            system.spawn(Boss).ask(asked).result(60)
        assert system.spawn(Boss, dedicated=True).ask(asked).result(60) == [0, 2, 4]
        assert system.spawn(Waits).ask(asked).result(60) == [0, 2, 4]


def test_an_exit_in_a_coroutine_ends_the_run_though_errors_are_skipped() -> None:
    async def leave(row: int) -> int:
        if row == 3:
            raise SystemExit(3)
        return row

    with pytest.raises(SystemExit):
        rows.map(leave, in_flight=2, errors="skip").collect().run_sequentially({"rows": range(6)})
    with ActorSystem(workers=2) as system:
        run = system.run(rows.map(leave, in_flight=2, errors="skip").collect())
        run.send("rows", range(3))
        run.send("rows", range(3, 6))
        with pytest.raises(StreamError) as caught:
            run.finish(60)
        assert isinstance(caught.value.__cause__, SystemExit)
