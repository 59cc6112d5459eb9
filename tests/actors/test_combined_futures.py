"""Futures that combine others: `gather`, `first`, `map`, `recover` and `Future.of`."""

import asyncio
import concurrent.futures
from typing import Any

import pytest

from callboard import Actor, ActorSystem, AskCancelled, CallboardError, Future, first, gather
from callboard.testing import ManualSystem

DEADLINE = 30.0


def futures(count: int) -> list[Future[Any]]:
    return [Future() for _ in range(count)]


class Double(Actor[int]):
    def receive(self, message: int) -> int:
        return 2 * message


# --- gather ---------------------------------------------------------------------------------------


def test_gather_has_the_answers_in_the_order_of_its_futures() -> None:
    sources = futures(3)
    both = gather(*sources)
    for i in (2, 0, 1):
        assert not both.done()
        sources[i].set_result(i)
    assert both.result(0) == [0, 1, 2]
    assert gather().result(0) == []


def test_gather_fails_as_the_first_that_fails_and_drops_the_others() -> None:
    sources = futures(3)
    both = gather(*sources)
    sources[1].set_exception(LookupError("first"))
    with pytest.raises(LookupError, match="first"):
        both.result(0)
    sources[0].set_result(0)
    sources[2].set_exception(ValueError("later"))
    with pytest.raises(LookupError, match="first"):
        both.result(0)


def test_gather_can_have_the_errors_among_the_answers() -> None:
    sources = futures(2)
    both = gather(*sources, return_exceptions=True)
    error = LookupError("one of two")
    sources[0].set_exception(error)
    sources[1].set_result(1)
    assert both.result(0) == [error, 1]
    with pytest.raises(ValueError, match="return_exceptions"):
        gather(return_exceptions=1)  # type: ignore[call-overload]


def test_to_cancel_gather_cancels_asks_that_nobody_else_waits_for(manual: ManualSystem) -> None:
    double = manual.spawn(Double)
    asked, shared = double.ask(1), double.ask(2)
    seen: list[Any] = []
    shared.add_done_callback(lambda done: seen.append(done.result()))
    promise: Future[int] = Future()
    both = gather(asked, shared, promise)
    assert both.cancel()
    assert both.cancelled()
    assert asked.cancelled()
    manual.run_until_idle()
    assert seen == [4]
    assert not promise.done()


@pytest.mark.parametrize("function", [gather, first])
def test_plain_values_are_no_futures(function: Any) -> None:
    with pytest.raises(TypeError, match=rf"{function.__name__}\(\) expects futures, got \[<Future"):
        function([Future()])


async def test_gather_takes_futures_and_coroutines_of_asyncio() -> None:
    async def five() -> int:
        await asyncio.sleep(0)
        return 5

    theirs = asyncio.get_running_loop().create_future()
    theirs.set_result(6)
    ours: Future[int] = Future()
    ours.set_result(7)
    assert await gather(five(), theirs, ours) == [5, 6, 7]


def test_an_actor_awaits_what_it_gathers() -> None:
    class Summing(Actor[int]):
        async def receive(self, message: int) -> int:
            double = self.spawn(Double)
            return sum(await gather(*[double.ask(n) for n in range(message)]))

    with ActorSystem(workers=1) as system:
        assert system.spawn(Summing).ask(4).result(DEADLINE) == 12
        summing = system.spawn(Summing, event_loop=True)
        assert summing.ask(4).result(DEADLINE) == 12
    with ManualSystem() as manual:
        double = manual.spawn(Double)
        assert gather(double.ask(1), double.ask(2)).result() == [2, 4]
        assert first(double.ask(3)).map(str).result() == "6"


# --- first ----------------------------------------------------------------------------------------


def test_first_has_the_outcome_of_the_first_that_is_done() -> None:
    sources = futures(3)
    found = first(*sources)
    sources[1].set_result("b")
    sources[0].set_exception(LookupError())
    assert found.result(0) == "b"
    assert not sources[2].done()
    failing = first(sources[2])
    sources[2].set_exception(LookupError("alone"))
    with pytest.raises(LookupError, match="alone"):
        failing.result(0)
    with pytest.raises(ValueError, match="at least one future"):
        first()


# --- map and recover ------------------------------------------------------------------------------


def test_map_makes_an_answer_of_the_answer() -> None:
    source: Future[int] = Future()
    mapped = source.map(lambda n: n + 1).map(str)
    assert not mapped.done()
    source.set_result(1)
    assert mapped.result(0) == "2"
    assert source.map(lambda n: n * 10).result(0) == 10


def test_an_error_passes_through_map_to_recover() -> None:
    source: Future[int] = Future()
    called: list[int] = []
    recovered = source.map(called.append).recover(lambda error: str(error))
    source.set_exception(ValueError("none"))
    assert recovered.result(0) == "none"
    assert called == []
    answered: Future[int] = Future()
    answered.set_result(1)
    assert answered.recover(lambda error: 2).result(0) == 1


def test_an_error_of_the_function_is_one_of_the_future() -> None:
    source: Future[int] = Future()
    source.set_result(0)
    with pytest.raises(ZeroDivisionError):
        source.map(lambda n: 1 // n).result(0)
    with pytest.raises(TypeError, match="StopIteration"):
        source.map(lambda n: next(iter(()))).result(0)
    with pytest.raises(TypeError, match=r"map\(\) expects a function, got 3"):
        source.map(3)  # type: ignore[call-overload]


def test_a_future_that_the_function_returns_is_waited_for(manual: ManualSystem) -> None:
    double = manual.spawn(Double)
    assert double.ask(1).map(double.ask).map(double.ask).result() == 8


def test_to_cancel_what_map_made_cancels_the_ask(manual: ManualSystem) -> None:
    asked = manual.spawn(Double).ask(1)
    mapped = asked.map(str)
    assert mapped.cancel()
    assert asked.cancelled()
    with pytest.raises(AskCancelled):
        mapped.result(0)


# --- of -------------------------------------------------------------------------------------------


def test_a_future_of_a_value_or_of_a_callboard_future() -> None:
    ours: Future[int] = Future()
    same: Future[int] = Future.of(ours)
    assert same is ours
    assert Future.of(5).result(0) == 5
    assert Future.of(None).result(0) is None


def test_a_future_of_an_executors_future_cancels_it() -> None:
    theirs: concurrent.futures.Future[int] = concurrent.futures.Future()
    ours = Future.of(theirs)
    theirs.set_result(5)
    assert ours.result(0) == 5
    theirs = concurrent.futures.Future()
    ours = Future.of(theirs)
    assert ours.cancel()
    assert theirs.cancelled()
    theirs = concurrent.futures.Future()
    ours = Future.of(theirs)
    theirs.cancel()
    assert ours.cancelled()


async def test_a_future_of_a_coroutine_is_a_task_which_can_be_cancelled() -> None:
    async def sleep() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            ended.set()
            raise

    ended = asyncio.Event()
    ours = Future.of(sleep())
    await asyncio.sleep(0)
    assert ours.cancel()
    await ended.wait()


def test_a_coroutine_without_an_event_loop_is_an_error() -> None:
    async def never() -> None:
        pass

    coroutine = never()
    with pytest.raises(
        CallboardError, match="cannot be awaited here: no asyncio event loop is running"
    ):
        Future.of(coroutine)
    coroutine.close()
