"""Outputs that are taken by `async for`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator

import pytest

from callboard import Actor, ActorSystem, CallboardError, WouldBlock
from callboard.streams import Run, RunError, StreamError, entry
from tests.streams.taking import EXPECTED, ROWS, feed, graph, taken_from


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem(workers=2) as system:
        yield system


@pytest.mark.parametrize("limit", [1, 100, 65_536])
async def test_a_task_takes_what_a_thread_sends(system: ActorSystem, limit: int) -> None:
    run = system.run(graph(), batch_size=7)
    results = run.results(limit=limit)
    taking = asyncio.create_task(taken_from(results))
    await asyncio.to_thread(feed, run)
    assert await taking == EXPECTED


async def test_other_tasks_go_on_while_one_waits_for_outputs(system: ActorSystem) -> None:
    opened = threading.Event()

    def wait(row: int) -> int:
        assert opened.wait(60)
        return row

    run = system.run(entry("x", int).map(wait).collect())
    results = run.results()
    run.send("x", [7])
    taking = asyncio.create_task(anext(results))
    for _ in range(100):
        await asyncio.sleep(0)
    assert not taking.done()
    opened.set()
    assert await taking == 7


def test_a_task_that_is_cancelled_leaves_no_thread_and_loses_no_output(system: ActorSystem) -> None:
    run = system.run(entry("x", int).collect())
    results = run.results()

    async def main() -> None:
        taking = asyncio.create_task(taken_from(results))
        await asyncio.sleep(0)
        taking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await taking

    asyncio.run(main())  # which waits for the threads that it has begun
    run.send("x", [1, 2])
    assert [next(results), next(results)] == [1, 2]


async def test_outputs_come_before_a_failure(system: ActorSystem) -> None:
    sent = threading.Event()

    def fail_at_50(n: int) -> int:
        assert n != 50 or not sent.wait(30)
        return n

    run = system.run(entry("x", int).map(fail_at_50).collect())
    results = run.results()
    run.send("x", ROWS[:100])
    sent.set()
    got = [await anext(results) for _ in range(50)]
    with pytest.raises(StreamError, match="at input 50, 50"):
        await anext(results)
    assert got == list(range(50))


def test_a_send_on_the_loop_that_would_wait_for_the_loop_is_refused(system: ActorSystem) -> None:
    async def main() -> tuple[int, list[int]]:
        run = system.run(entry("x", int).collect(), batch_size=1, window=1)
        results = run.results(limit=2)
        run.send("x", [0])
        assert await anext(aiter(results)) == 0
        with pytest.raises(CallboardError, match="would block the event loop") as cut:
            run.send("x", range(1, 10))
        sent: int = cut.value.sent  # type: ignore[attr-defined]
        assert cut.value.unsent == [sent + 1]  # type: ignore[attr-defined]
        await run.afinish()
        return sent, await taken_from(results)

    sent, rows = asyncio.run(main())
    assert rows == list(range(1, sent + 1))


async def coming(rows: list[int]) -> AsyncIterator[int]:
    for row in rows:
        yield row


@pytest.mark.parametrize("limit", [1, 10, 1000])
async def test_an_async_iterable_waits_for_a_taker(system: ActorSystem, limit: int) -> None:
    run = system.run(graph())
    results = run.results(limit=limit)
    run.send("x", ROWS[:1])

    async def send() -> None:
        await run.asend("x", coming(ROWS[1:]))
        await run.afinish()

    sending = asyncio.create_task(send())
    got = await taken_from(results)
    await sending
    assert got == EXPECTED


async def test_a_send_that_would_wait_for_another_taker_is_refused(system: ActorSystem) -> None:
    run = system.run(entry("x", int).collect(), batch_size=1)
    results = run.results(limit=2)
    run.send("x", ROWS[:2])
    while results.pending < 2:
        await asyncio.sleep(0)
    words = r"await asend\(\), as 2 outputs of 'collect' wait to be taken"
    with pytest.raises(WouldBlock, match=words):
        run.send("x", ROWS[2:])
    sending = run.asend("x", ROWS[2:])
    taking = asyncio.to_thread(lambda: [next(results) for _ in ROWS])
    got, _ = await asyncio.gather(taking, asyncio.ensure_future(sending))
    assert got == ROWS


async def test_tasks_of_one_loop_send_and_take_in_its_thread(system: ActorSystem) -> None:
    run = system.run(graph(), threading="manual", batch_size=16)
    results = run.results(limit=100)
    taking = asyncio.create_task(taken_from(results))
    for at in range(0, len(ROWS), 50):
        run.send("x", ROWS[at : at + 50])
        while results.pending:
            await asyncio.sleep(0)
    run.finish()
    assert await taking == EXPECTED


def test_an_actor_on_an_event_loop_takes_as_tasks_do(system: ActorSystem) -> None:
    class Taker(Actor[Run[list[int]]]):
        async def receive(self, message: Run[list[int]]) -> int:
            total = 0
            async for row in message.results(limit=100):
                total += row
            return total

    run = system.run(graph())
    total = system.spawn(Taker, event_loop=True).ask(run)
    feed(run)
    assert total.result(timeout=60) == sum(EXPECTED)


def test_rows_are_not_sent_by_async_for(system: ActorSystem) -> None:
    run = system.run(entry("x", int).collect())
    results = run.results([1, 2])
    with pytest.raises(RunError, match="would block the event loop while they are sent"):
        asyncio.run(taken_from(results))
    with pytest.raises(RunError, match="would block the event loop while they are sent"):
        asyncio.run(results.__anext__())
    assert list(results) == [1, 2]
