"""Operators that wait for answers: rows at which these fail, retries, and wrong arguments."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from callboard import Actor, ActorSystem, AskTimeout, Future, Supervision
from callboard.streams import FailedRow, Graph, GraphError, RowCounts, RunEnded, Stream, StreamError
from callboard.testing import ManualSystem
from tests.streams.answering import ROWS, Doubling, Holding, double, rows

RESUME = Supervision("resume")


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


def sequentially(_: ActorSystem, graph: Graph[Any], counts: RowCounts) -> Any:
    return graph.run_sequentially({"rows": ROWS[:40]}, row_counts=counts)


def on_workers(system: ActorSystem, graph: Graph[Any], counts: RowCounts) -> Any:
    run = system.run(graph, batch_size=6)
    try:
        run.send("rows", ROWS[:40])
        return run.finish(timeout=60)
    finally:
        counts.skips.update(run.row_counts.skips)


RUNS = pytest.mark.parametrize("runs", [sequentially, on_workers])


@RUNS
@pytest.mark.parametrize("way", ["ask", "await"])
@pytest.mark.filterwarnings("ignore")
def test_errors_end_the_run_are_skipped_or_are_a_side(runs: Callable[..., Any], way: str) -> None:
    good = [row for row in ROWS[:40] if row % 10 != 7]
    with ActorSystem(workers=2) as system:
        seen: list[int] = []
        with pytest.raises(StreamError, match=r"failed at input 7, 7") as raised:
            runs(system, failing(system, way).to(seen.append), RowCounts())
        assert isinstance(raised.value.__cause__, ValueError)
        assert seen == ROWS[:7]
        counts = RowCounts()
        assert runs(system, failing(system, way, errors="skip").collect(), counts) == good
        assert sum(counts.skips.values()) == 4
        side = failing(system, way, errors="side")
        graph = Graph(side.collect(name="good"), side.failures.collect(name="bad"))
        found = runs(system, graph, RowCounts())
        assert found["good"] == good
        failures: list[FailedRow] = found["bad"]
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


def test_a_failure_elsewhere_lets_rows_go_that_wait(manual: ManualSystem) -> None:
    def refuse(row: int) -> int:
        if row == 3:
            raise ValueError(row)
        return row

    stuck = manual.spawn(Holding)
    graph = Graph(rows.ask(stuck).collect(name="a"), rows.map(refuse).collect(name="b"))
    run = manual.run(graph, batch_size=1)
    run.send("rows", range(6))
    manual.run_until_idle()
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


def test_an_answer_that_takes_too_long_is_an_error_of_its_row(manual: ManualSystem) -> None:
    async def stay(row: int) -> int:
        await asyncio.sleep(10 if row == 1 else 0)
        return row

    held = manual.spawn(Holding)
    run = manual.run(rows.ask(held, timeout=2.0).collect())
    run.send("rows", [0])
    with pytest.raises(StreamError) as raised:
        run.finish()
    assert isinstance(raised.value.__cause__, AskTimeout)
    run = manual.run(rows.map(stay, in_flight=2, timeout=2.0, errors="skip").collect())
    run.send("rows", [0, 1, 2])
    assert run.finish() == [0, 2]
    assert isinstance(run.row_counts.failures[0].error, TimeoutError)


@pytest.mark.parametrize("way", ["ask", "await"])
def test_failed_asks_are_repeated_after_pauses(way: str, manual: ManualSystem) -> None:
    tries: list[tuple[float, int]] = []

    def attempt(row: int) -> int:
        tries.append((round(manual.now, 3), row))
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
            return rows.ask(manual.spawn(Flaky, supervision=RESUME), **options)
        return rows.map(flaky, in_flight=8, **options)

    run = manual.run(tried(retries=2, backoff=1.0, jitter=0).collect())
    run.send("rows", [5, 6])
    assert run.finish() == [5, 6]
    assert sorted(tries) == [(time, row) for time in (0.0, 1.0, 3.0) for row in (5, 6)]
    tries.clear()
    run = manual.run(tried(retries=1, backoff=0.0).collect())
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

        def send_and_finish() -> None:  # the first may raise, too
            run.send("rows", range(3, 6))
            run.finish(60)

        with pytest.raises(StreamError) as caught:
            send_and_finish()
        assert isinstance(caught.value.__cause__, SystemExit)


# --- what is given ------------------------------------------------------------------------------


anything: Any = rows


def plain(row: int) -> int:
    return row


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: anything.ask(plain), r"ask\(\) expects the ref of an actor, got <function plain"),
        (lambda: anything.map(double), "which needs in_flight="),
        (lambda: anything.map(double, in_flight=0), "in_flight must be a whole number from 1"),
        (
            lambda: anything.map(plain, timeout=1.0),
            "timeout=, retries= and ordered= need in_flight=",
        ),
        (
            lambda: anything.map(double, in_flight=1, timeout=0.0),
            "timeout must be a number of seconds",
        ),
        (lambda: anything.map(double, in_flight=1, retries=-1), "retries must be a whole number"),
        (
            lambda: anything.map(double, in_flight=1, backoff=-1.0),
            "backoff must be a number of seconds",
        ),
        (lambda: anything.map(double, in_flight=1, releases_gil=True), "releases_gil= is for"),
    ],
)
def test_arguments_are_checked(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(GraphError, match=said):
        make()


def test_a_function_that_returns_nothing_to_await_is_an_error_of_its_row() -> None:
    with pytest.raises(StreamError) as raised:
        anything.map(plain, in_flight=2).collect().run_sequentially({"rows": [1]})
    assert "expected the function to return an awaitable, got 1" in str(raised.value.__cause__)


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
