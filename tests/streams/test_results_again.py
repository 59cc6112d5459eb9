"""Results of an output whose consumer is gone continue with another consumer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from callboard import ActorSystem
from callboard.streams import Results, Run, RunError, RunTimeout, entry
from tests.streams.taking import Thread

Consumer = Callable[[Run[Any], list[Any]], Any]


@pytest.fixture
def run() -> Iterator[Run[list[Any]]]:
    with ActorSystem() as system:
        yield system.run(entry("x").collect(), batch_size=3)


def raises_in_the_loop(run: Run[Any], taken: list[Any]) -> None:
    def consume() -> None:
        for row in run.results():
            taken.append(row)
            if row == 4:
                raise ValueError(row)

    with pytest.raises(ValueError, match="4"):
        consume()


def raises_in_a_thread_whose_traceback_is_kept(run: Run[Any], taken: list[Any]) -> Thread:
    def consume() -> None:
        results = run.results()
        taken.extend([next(results), next(results)])
        raise ValueError

    thread = Thread(consume)
    thread.join(60)
    assert thread.error is not None
    return thread


def raises_in_a_task_that_is_kept(run: Run[Any], taken: list[Any]) -> Any:
    async def consume() -> None:
        results = run.results()
        async for row in results:
            taken.append(row)
            if row == 4:
                raise ValueError(row)

    async def main() -> Any:
        task = asyncio.create_task(consume())
        await asyncio.wait([task])
        return task

    return asyncio.run(main())


def is_cancelled_while_it_waits(run: Run[Any], taken: list[Any]) -> Any:
    async def consume(results: Results[Any], all_taken: asyncio.Event) -> None:
        async for row in results:
            taken.append(row)
            if len(taken) == 10:
                all_taken.set()

    async def main() -> Any:
        results, all_taken = run.results(), asyncio.Event()
        task = asyncio.create_task(consume(results, all_taken))
        await all_taken.wait()
        task.cancel()
        await asyncio.wait([task])
        return results

    return asyncio.run(main())


def is_dropped(run: Run[Any], taken: list[Any]) -> None:
    results = run.results()
    taken.append(next(results))


def is_closed(run: Run[Any], taken: list[Any]) -> Results[Any]:
    results = run.results()
    taken.append(next(results))
    results.close()
    return results


def stops_taking_all_at_once(run: Run[Any], taken: list[Any]) -> None:
    taken += run.results().take()


def has_never_taken(run: Run[Any], taken: list[Any]) -> None:
    run.results()


def would_wait_for_itself(run: Run[Any], taken: list[Any]) -> Results[Any]:
    results = run.results()
    taken += [next(results) for _ in range(10)]
    run._work.deployment.has_caller, run._work.life._caller = True, threading.current_thread()
    with pytest.raises(RunError, match="would wait forever"):
        next(results)
    run._work.deployment.has_caller = False
    return results


@pytest.mark.parametrize(
    "consumer",
    [
        raises_in_the_loop,
        raises_in_a_thread_whose_traceback_is_kept,
        raises_in_a_task_that_is_kept,
        is_cancelled_while_it_waits,
        is_dropped,
        is_closed,
        stops_taking_all_at_once,
        has_never_taken,
        would_wait_for_itself,
    ],
)
@pytest.mark.parametrize("limit", [1, 4, 65_536])
def test_another_consumer_goes_on(run: Run[list[Any]], consumer: Consumer, limit: int) -> None:
    run.send("x", range(10))
    taken: list[Any] = []
    kept = consumer(run, taken)
    results = run.results(limit=limit)

    def send_the_others() -> None:
        run.send("x", range(10, 40), timeout=60)
        run.finish(timeout=60)

    sender = Thread(send_the_others)
    assert taken + list(results) == list(range(40))
    sender.ends()
    del kept


def test_a_consumer_that_let_go_may_take_again_first(run: Run[list[Any]]) -> None:
    run.send("x", range(10))
    first = run.results()
    assert next(first) == 0
    first.close()
    assert next(first) == 1
    second = run.results()
    assert next(second) == 2
    calls: list[Callable[[], Any]] = [lambda: next(first), lambda: asyncio.run(anext_of(first))]
    for call in [*calls, first.take]:
        with pytest.raises(RunError, match="another call of results"):
            call()
    first.close()  # it is not its own any more
    with pytest.raises(RunError, match="already"):
        run.results()
    run.finish(timeout=60)
    assert list(second) == list(range(3, 10))


async def anext_of(results: Results[Any]) -> Any:
    return await anext(results)


def test_a_sender_does_not_wait_for_a_consumer_that_is_gone(run: Run[list[Any]]) -> None:
    results = run.results(limit=1)
    sender = Thread(lambda: run.send("x", range(100), timeout=60))
    assert next(results) == 0
    del results
    sender.ends()
    assert run.finish(timeout=60) == list(range(1, 100))


def test_another_consumers_limit_holds_from_then_on(run: Run[list[Any]]) -> None:
    run.results(limit=1).close()
    run.send("x", range(12))
    assert run._work.waiting.for_all()
    results = run.results(limit=3)
    with pytest.raises(RunTimeout, match="12 outputs of 'collect' wait to be taken"):
        run.send("x", [12], timeout=0.0)
    assert results.take() == list(range(12))
    run.send("x", [12])


def test_a_consumer_of_rows_that_is_closed_leaves_what_came_to_another() -> None:
    with ActorSystem() as system:
        run = system.run(entry("x").collect(), threading="manual", batch_size=4)
        first = run.results(range(10))
        assert next(first) == 0
        first.close()
        assert run.results().take() == [1, 2, 3]
