"""Futures of asyncio and concurrent.futures as answers, and callboard's futures used as such."""

import asyncio
import concurrent.futures
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from callboard import Actor, ActorSystem, Future, as_concurrent

DEADLINE = 30.0


def same(value: Any) -> Any:
    return value


class Does(Actor[Callable[[], Any]]):
    def receive(self, function: Callable[[], Any]) -> Any:
        return function()


def test_an_answer_of_an_executor_is_waited_for(system: ActorSystem) -> None:
    ref = system.spawn(Does, supervision="resume")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        assert ref.ask(lambda: pool.submit(pow, 2, 5)).result(DEADLINE) == 32
        with pytest.raises(ZeroDivisionError):
            ref.ask(lambda: pool.submit(divmod, 2, 0)).result(DEADLINE)
    waiting: concurrent.futures.Future[int] = concurrent.futures.Future()
    answer = ref.ask(lambda: waiting)
    while ref.info().pending_answers != 1:
        pass
    assert not answer.done()
    waiting.cancel()
    with pytest.raises(concurrent.futures.CancelledError):
        answer.result(DEADLINE)


async def test_an_answer_of_asyncio_is_waited_for(system: ActorSystem) -> None:
    ref = system.spawn(Does)
    loop = asyncio.get_running_loop()
    theirs = [loop.create_future() for _ in range(3)]
    answers = [ref.ask(partial(same, future)) for future in theirs]
    await asyncio.sleep(0)
    theirs[0].set_result("told")
    theirs[1].set_exception(KeyError("of theirs"))
    theirs[2].cancel()
    assert await answers[0] == "told"
    with pytest.raises(KeyError, match="of theirs"):
        await answers[1]
    with pytest.raises(asyncio.CancelledError):
        await answers[2]


def test_an_answer_of_a_closed_loop_is_an_error(system: ActorSystem) -> None:
    loop = asyncio.new_event_loop()
    theirs = loop.create_future()
    loop.close()
    with pytest.raises(RuntimeError, match="closed"):
        system.spawn(Does).ask(lambda: theirs).result(DEADLINE)


def test_an_actor_that_stops_leaves_none_without_an_end(system: ActorSystem) -> None:
    waiting: concurrent.futures.Future[int] = concurrent.futures.Future()
    ref = system.spawn(Does)
    answer = ref.ask(lambda: waiting)
    while ref.info().pending_answers != 1:
        pass
    ref.stop()
    with pytest.raises(Exception, match="was stopped"):
        answer.result(DEADLINE)
    waiting.set_result(1)


@pytest.mark.parametrize("answer", [None, 1, [], object(), Exception("as a value"), Actor])
def test_other_answers_are_values(system: ActorSystem, answer: Any) -> None:
    assert system.spawn(Does).ask(lambda: answer).result(DEADLINE) is answer


def test_concurrent_futures_take_callboards() -> None:
    ours: list[Future[int]] = [Future() for _ in range(3)]
    theirs = [as_concurrent(future) for future in ours]
    assert concurrent.futures.wait(theirs, timeout=0).done == set()
    ours[0].set_result(1)
    ours[1].set_exception(KeyError("of ours"))
    done, waiting = concurrent.futures.wait(theirs, 0, concurrent.futures.FIRST_COMPLETED)
    assert done == set(theirs[:2])
    assert waiting == {theirs[2]}
    assert theirs[0].result(0) == 1
    with pytest.raises(KeyError, match="of ours"):
        theirs[1].result(0)
    ours[2].set_result(3)
    assert set(concurrent.futures.as_completed(theirs, DEADLINE)) == set(theirs)
    assert not theirs[2].cancel()


async def test_asyncio_takes_callboards(system: ActorSystem) -> None:
    ref = system.spawn(Does)
    assert await asyncio.gather(*[ref.ask(partial(same, n)) for n in range(9)]) == [*range(9)]
    tasks = [asyncio.ensure_future(ref.ask(partial(same, n))) for n in range(9)]
    done, waiting = await asyncio.wait(tasks)
    assert done == set(tasks)
    assert waiting == set()
    assert await asyncio.wait_for(ref.ask(lambda: "in time"), DEADLINE) == "in time"
    assert await asyncio.wrap_future(as_concurrent(ref.ask(lambda: "wrapped"))) == "wrapped"
    answers = [await each for each in asyncio.as_completed([ref.ask(lambda: 1)])]
    assert answers == [1]


async def test_asyncio_wait_refuses_callboards(system: ActorSystem) -> None:
    ref = system.spawn(Does)
    answer: Any = ref.ask(lambda: "answer")
    with pytest.raises(TypeError, match=r"expects tasks: .*asyncio\.ensure_future"):
        await asyncio.wait([answer])
    assert await answer == "answer"
    with pytest.raises(TypeError, match="expects tasks"):  # one that is done, too
        await asyncio.wait([answer])
