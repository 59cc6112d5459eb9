"""After a cancelled `asend()`, rows that it took have gone in, and the others were not taken."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from itertools import islice
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.core.errors import AskCancelled
from callboard.streams import Run, entry
from tests.waiting import until

DEADLINE = 60
ROWS = 1_000


@pytest.fixture
def opened() -> Iterator[threading.Event]:
    opened = threading.Event()
    yield opened
    opened.set()


def gated(system: ActorSystem, opened: threading.Event, **options: Any) -> Run[list[int]]:
    """Run a graph whose rows get on when `opened` is set."""

    def wait(row: int) -> int:
        assert opened.wait(DEADLINE)
        return row

    return system.run(entry("rows", int).map(wait).collect(), **options)


async def sent_and_unsent(sending: Awaitable[None]) -> tuple[int, list[int]]:
    """Return what the cancellation says: a task that it ends raises another one."""
    with pytest.raises(asyncio.CancelledError) as caught:
        await sending
    assert not isinstance(sending, asyncio.Future) or sending.done()
    return caught.value.sent, caught.value.unsent  # type: ignore[attr-defined]


def within(main: Any) -> Any:
    return asyncio.run(asyncio.wait_for(main, DEADLINE))


@pytest.mark.parametrize("batch_size", [1, 64, None])
@pytest.mark.parametrize("steps", [1, 2, 5, 20, 100])
async def test_rows_go_in_once_and_in_order_whenever_sends_are_cancelled(
    opened: threading.Event, batch_size: int | None, steps: int
) -> None:
    opened.set()

    async with ActorSystem(workers=2) as system:
        run = gated(system, opened, batch_size=batch_size, window=2)
        source = iter(range(ROWS))
        while run.position["rows"] < ROWS // 2:
            task = asyncio.ensure_future(run.asend("rows", source))
            for _ in range(steps):
                await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task])
            await run.asend("rows", [*islice(source, 10)])
        taken = run.position["rows"]
        assert next(source, ROWS) == taken
        assert await run.afinish() == [*range(taken)]


@pytest.mark.parametrize("batch_size", [1, 64])
async def test_a_cancelled_wait_takes_nothing(opened: threading.Event, batch_size: int) -> None:
    async with ActorSystem(workers=2) as system:
        run = gated(system, opened, batch_size=batch_size, window=2)
        source = iter(range(ROWS))
        task = asyncio.create_task(sent_and_unsent(run.asend("rows", source)))
        await asyncio.sleep(0)  # it awaits
        while run.position["rows"] < 2 * batch_size:
            await asyncio.sleep(0)
        task.cancel()
        assert await task == (2 * batch_size, [])
        assert next(source) == 2 * batch_size
        opened.set()
        assert await run.afinish() == [*range(2 * batch_size)]


async def test_a_send_that_waits_for_takers_has_taken_nothing_when_it_is_cancelled() -> None:
    async with ActorSystem(workers=2) as system:
        run = system.run(entry("rows", int).collect(), batch_size=1)
        results = run.results(limit=3)
        source = iter(range(ROWS))
        task = asyncio.create_task(sent_and_unsent(run.asend("rows", source)))
        await asyncio.sleep(0)  # it awaits
        while results.pending < 3:
            await asyncio.sleep(0)
        task.cancel()
        assert await task == (run.position["rows"], [])
        assert next(source) == run.position["rows"]
        results.close()
        await run.afinish()


async def test_a_taken_row_goes_in_though_takers_have_stopped(opened: threading.Event) -> None:
    full = threading.Event()
    async with ActorSystem(workers=2) as system:
        run = gated(system, opened, batch_size=1)
        results = run.results(limit=1)

        def rows() -> Iterator[int]:
            yield 0
            opened.set()
            until(lambda: results.pending == 1)
            full.set()
            yield 1
            raise AssertionError("a row was taken without room for it")

        task = asyncio.create_task(sent_and_unsent(run.asend("rows", rows())))
        assert await asyncio.to_thread(full.wait, DEADLINE)
        task.cancel()
        assert await task == (2, [])
        results.close()
        assert await run.afinish() == [0, 1]


async def test_a_cancellation_waits_for_the_row_being_taken(opened: threading.Event) -> None:
    asked = threading.Event()

    def slow() -> Iterator[int]:
        yield 0
        asked.set()
        assert opened.wait(DEADLINE)
        yield 1
        yield 2

    async with ActorSystem(workers=2) as system:
        run = system.run(entry("rows", int).collect())
        source = slow()
        sending = run.asend("rows", source)
        task = asyncio.ensure_future(sending)
        assert await asyncio.to_thread(asked.wait, DEADLINE)
        task.cancel()
        while not sending.is_given_up:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        assert not task.done()
        opened.set()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert [*source] == [2]
        assert await run.afinish() == [0, 1]


async def test_a_second_cancellation_does_not_wait(opened: threading.Event) -> None:
    asked = threading.Event()

    def endless() -> Iterator[int]:
        asked.set()
        assert opened.wait(DEADLINE)
        yield 1

    async with ActorSystem(workers=2) as system:
        run = system.run(entry("rows", int).collect())
        sending = run.asend("rows", endless())
        task = asyncio.ensure_future(sending)
        assert await asyncio.to_thread(asked.wait, DEADLINE)
        task.cancel()
        while not sending.is_given_up:  # type: ignore[attr-defined]
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not opened.is_set()
        opened.set()


def test_cancel_of_the_future_ends_the_send(opened: threading.Event) -> None:
    with ActorSystem(workers=2) as system:
        run = gated(system, opened, batch_size=1, window=2)
        source = iter(range(ROWS))
        sending: Any = run.asend("rows", source)
        until(lambda: run.position["rows"] == 2)
        assert sending.cancel()
        with pytest.raises(AskCancelled) as caught:
            sending.result(DEADLINE)
        assert sending.cancelled()
        assert not sending.cancel()
        assert (caught.value.sent, caught.value.unsent) == (2, [])  # type: ignore[attr-defined]
        assert next(source) == 2
        opened.set()
        assert run.finish(DEADLINE) == [0, 1]


async def test_an_async_iterable_is_asked_when_there_is_room(opened: threading.Event) -> None:
    taken: list[int] = []

    async def counting() -> AsyncIterator[int]:
        for row in range(ROWS):
            taken.append(row)
            yield row

    async with ActorSystem(workers=2) as system:
        run = gated(system, opened, window=2)
        task = asyncio.create_task(sent_and_unsent(run.asend("rows", counting())))
        await asyncio.sleep(0)  # it awaits
        while run.position["rows"] < 2:
            await asyncio.sleep(0)
        task.cancel()
        assert await task == (2, [])
        assert taken == [0, 1]
        opened.set()
        assert await run.afinish() == [0, 1]


def test_taken_rows_have_gone_in_in_a_cancelled_trio_scope(opened: threading.Event) -> None:
    trio = pytest.importorskip("trio")

    async def main() -> None:
        async with ActorSystem(workers=2) as system:
            run = gated(system, opened, batch_size=8, window=2)
            source = iter(range(ROWS))
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:

                    async def end_it() -> None:
                        while run.position["rows"] < 16:
                            await trio.sleep(0)
                        scope.cancel()

                    nursery.start_soon(end_it)
                    await run.asend("rows", source)
            assert scope.cancelled_caught
            assert next(source) == 16
            opened.set()
            assert await run.afinish() == [*range(16)]

    async def limited() -> None:
        with trio.fail_after(DEADLINE):
            await main()

    trio.run(limited)
