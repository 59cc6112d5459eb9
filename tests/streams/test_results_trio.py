"""Outputs that tasks of trio take by `async for`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.streams import RunError, StreamError, entry
from tests.streams.taking import EXPECTED, ROWS, feed, graph, taken_from

trio = pytest.importorskip("trio")

DEADLINE = 60


@pytest.fixture
def system() -> Iterator[ActorSystem]:
    with ActorSystem(workers=2) as system:
        yield system


async def coming(rows: list[int]) -> AsyncIterator[int]:
    for at, row in enumerate(rows):
        if at % 100 == 0:
            await trio.lowlevel.checkpoint()
        yield row


def within(main: Any, *arguments: Any) -> Any:
    async def limited() -> Any:
        with trio.fail_after(DEADLINE):
            return await main(*arguments)

    return trio.run(limited)


@pytest.mark.parametrize("limit", [1, 100, 65_536])
def test_a_task_takes_what_another_sends(system: ActorSystem, limit: int) -> None:
    async def main() -> list[int]:
        run = system.run(graph(), batch_size=7)
        async with trio.open_nursery() as nursery:

            async def send() -> None:
                await run.asend("x", coming(ROWS))
                await run.afinish()

            results = run.results(limit=limit)
            nursery.start_soon(send)
            return await taken_from(results)

    assert within(main) == EXPECTED


def test_a_task_takes_what_a_thread_sends(system: ActorSystem) -> None:
    async def main() -> list[int]:
        run = system.run(graph())
        results = run.results(limit=10)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.to_thread.run_sync, feed, run)
            return await taken_from(results)

    assert within(main) == EXPECTED


def test_another_task_goes_on_when_the_taker_was_cancelled(system: ActorSystem) -> None:
    run = system.run(entry("x", int).collect())
    results = run.results()

    async def main() -> None:
        with trio.move_on_after(0.01) as scope:
            await anext(results)
        assert scope.cancelled_caught
        run.send("x", [1, 2])
        assert await anext(results) == 1

    within(main)
    assert next(results) == 2


def test_an_iterator_is_left_when_the_task_that_took_is_over(system: ActorSystem) -> None:
    run = system.run(entry("x", int).collect())
    run.send("x", [1, 2, 3])
    results = run.results()
    tasks = []

    async def take() -> None:
        tasks.append(trio.lowlevel.current_task())
        assert await anext(results) == 1
        with pytest.raises(RunError, match="already have an iterator"):
            run.results()

    async def main() -> list[int]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(take)
        others = run.results()
        return [await anext(others), await anext(others)]

    assert within(main) == [2, 3]
    assert len(tasks) == 1


def test_a_failure_comes_after_the_outputs_before_it(system: ActorSystem) -> None:
    async def main() -> list[int]:
        run = system.run(entry("x", int).map(lambda n: 100 // (3 - n) and n).collect())
        await run.asend("x", ROWS[:3])

        async def send_the_rest() -> None:
            await run.asend("x", ROWS[3:])
            await run.afinish()

        with pytest.raises(StreamError, match="at input 3, 3"):
            await send_the_rest()
        results = run.results()
        got = [await anext(results) for _ in range(3)]
        with pytest.raises(StreamError, match="at input 3, 3"):
            await anext(results)
        return got

    assert within(main) == [0, 1, 2]
