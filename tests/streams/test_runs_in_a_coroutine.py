"""A run in an event loop: waits are awaited, and blocking calls are refused."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from callboard import ActorSystem, WouldBlock
from callboard.streams import RunEnded, entry

DEADLINE = 30.0


@pytest.fixture(params=["dynamic", "manual"])
def model(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_rows_and_results_are_awaited(model: str) -> None:
    async with ActorSystem(workers=2) as system:
        graph = entry("rows").map(lambda row: row + 1).collect()
        run = system.run(graph, threading=model, window=2, batch_size=4)
        for first in range(0, 1000, 100):
            await run.asend("rows", range(first, first + 100))
        assert await run.afinish() == [*range(1, 1001)]


@pytest.fixture
def opened() -> Iterator[threading.Event]:
    event = threading.Event()
    yield event
    event.set()


async def test_a_send_without_room_and_a_finish_are_refused(opened: threading.Event) -> None:
    def wait(row: int) -> int:
        opened.wait(DEADLINE)
        return row

    async with ActorSystem(workers=1) as system:
        run = system.run(entry("rows").map(wait).collect(), window=2, batch_size=1)
        with pytest.raises(WouldBlock, match=r"block the event loop: await asend") as e:
            run.send("rows", range(100))
        with pytest.raises(WouldBlock, match=r"block the event loop: await afinish"):
            run.finish()
        opened.set()
        await run.asend("rows", range(e.value.sent, 100))  # type: ignore[attr-defined]
        assert await run.afinish() == [*range(100)]


async def test_errors_come_with_what_was_sent() -> None:
    async with ActorSystem(workers=1) as system:
        run = system.run(entry("rows").collect())
        with pytest.raises(ZeroDivisionError) as caught:
            await run.asend("rows", (1 // (3 - row) for row in range(10)))
        assert caught.value.sent == 3  # type: ignore[attr-defined]
        assert caught.value.unsent == []  # type: ignore[attr-defined]
        await run.afinish()


async def test_the_end_of_its_block_finishes(model: str) -> None:
    async with ActorSystem(workers=2) as system:
        graph = entry("rows").map(lambda row: row + 1).collect()
        async with system.run(graph, threading=model) as run:
            await run.asend("rows", range(10))
        assert run.finish() == [*range(1, 11)]  # which has ended


async def test_a_cancellation_cancels_the_run(opened: threading.Event) -> None:
    async with ActorSystem(workers=1) as system:
        graph = entry("rows").map(lambda row: opened.wait(DEADLINE)).collect()

        async def leaves() -> None:
            async with system.run(graph, batch_size=1) as run:
                runs.append(run)
                await run.asend("rows", range(3))
                asyncio.get_running_loop().call_soon(task.cancel)
                asyncio.get_running_loop().call_later(0.05, opened.set)

        runs: list[Any] = []
        task = asyncio.ensure_future(leaves())
        await asyncio.wait([task])
        assert task.cancelled()
        with pytest.raises(RunEnded):
            await runs[0].asend("rows", [1])


async def counting(rows: int) -> AsyncIterator[int]:
    for row in range(rows):
        if row % 10 == 0:
            await asyncio.sleep(0)
        yield row


async def test_rows_of_an_asynchronous_iterable_are_sent_as_they_come(model: str) -> None:
    async with ActorSystem(workers=2) as system:
        graph = entry("rows").map(lambda row: row + 1).collect()
        run = system.run(graph, threading=model, window=2)
        await run.asend("rows", counting(500))
        assert await run.afinish() == [*range(1, 501)]


async def failing(rows: int) -> AsyncIterator[int]:
    for row in range(rows):
        yield row
    raise LookupError(rows)


async def test_errors_of_an_asynchronous_iterable_come_with_what_was_sent() -> None:
    async with ActorSystem(workers=1) as system:
        run = system.run(entry("rows").collect())
        with pytest.raises(LookupError) as caught:
            await run.asend("rows", failing(3))
        assert caught.value.sent == 3  # type: ignore[attr-defined]
        assert caught.value.unsent == []  # type: ignore[attr-defined]
        assert await run.afinish() == [0, 1, 2]
        with pytest.raises(RunEnded) as ended:
            await run.asend("rows", failing(3))
        assert (ended.value.sent, ended.value.unsent) == (0, [0])


async def test_an_asynchronous_iterable_waits_for_room(opened: threading.Event) -> None:
    def wait(row: int) -> int:
        opened.wait(DEADLINE)
        return row

    async with ActorSystem(workers=1) as system:
        run = system.run(entry("rows").map(wait).collect(), window=2)
        asyncio.get_running_loop().call_later(0.05, opened.set)
        await run.asend("rows", counting(100))
        assert await run.afinish() == [*range(100)]


@pytest.mark.parametrize("steps", range(0, 40, 4))
async def test_a_cancel_at_any_step_has_sent_the_rows_before(steps: int) -> None:
    async with ActorSystem(workers=2) as system:
        run = system.run(entry("rows").collect(), window=2)
        task = asyncio.ensure_future(run.asend("rows", counting(10_000)))
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        came = await run.afinish()
        assert came == [*range(len(came))]


async def test_a_waiting_sender_does_not_block_the_loop(opened: threading.Event) -> None:
    def wait(row: int) -> int:
        opened.wait(DEADLINE)
        return row

    async with ActorSystem(workers=1) as system:
        run = system.run(entry("rows").map(wait).collect(), window=2, batch_size=1)
        first = asyncio.ensure_future(run.asend("rows", [0] * 10))
        while run._work.sent["rows"] < 2:
            await asyncio.sleep(0)
        with pytest.raises(WouldBlock):
            run.send("rows", [1])
        opened.set()
        await first
        assert await run.afinish() == [0] * 10


async def test_other_calls_that_would_wait_are_refused(opened: threading.Event) -> None:
    graph = entry("rows").map(lambda row: opened.wait(DEADLINE)).collect()
    async with ActorSystem(workers=1) as system:
        run = system.run(graph)
        await run.asend("rows", [1])
        with pytest.raises(WouldBlock, match=r"cancel\(\) of .*: await acancel\(\)"):
            run.cancel()
        with pytest.raises(WouldBlock, match=r"results\(\) of .*: take them by `async for`"):
            next(run.results())
        pulled = run.results([1])
        with pytest.raises(WouldBlock, match=r"with rows of .*asend\(\)"):
            next(pulled)
        cancelling = run.acancel(DEADLINE)
        opened.set()
        await cancelling
        run.cancel()  # which has ended
        with pytest.raises(RunEnded):
            await run.afinish()


async def test_a_plain_block_is_refused_where_it_begins_and_the_run_is_cancelled() -> None:
    async with ActorSystem(workers=1) as system:
        run = system.run(entry("rows").collect())
        with pytest.raises(WouldBlock, match=r"end of `with` of .*: use `async with`"):
            run.__enter__()
        with pytest.raises(RunEnded):
            await run.afinish()


async def test_outputs_that_are_there_are_taken_without_a_wait() -> None:
    async with ActorSystem(workers=1) as system:
        run = system.run(entry("rows").collect())
        results = run.results()
        await run.asend("rows", range(5))
        await run.afinish()
        assert list(results) == [*range(5)]
