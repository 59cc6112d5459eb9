"""Futures on their own: completion, the order of callbacks, exceptions."""

import asyncio
import gc
import threading
import traceback
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pytest

from callboard import Actor, ActorSystem, AskTimeout, Future
from callboard.testing import ManualSystem

# --- completion -----------------------------------------------------------------------------------


def chain_by_callbacks(length: int) -> list[Future[int]]:
    """Futures each of which completes the next by a callback."""
    futures: list[Future[int]] = [Future() for _ in range(length)]
    for future, following in pairwise(futures):
        future.add_done_callback(pass_to(following))
    return futures


def pass_to(following: Future[int]) -> Callable[[Future[int]], object]:
    return lambda done: following.set_result(done.result() + 1)


@pytest.mark.parametrize("length", [5_000, 100_000])
def test_a_chain_of_futures_that_complete_each_other_is_completed_to_its_end(length: int) -> None:
    futures = chain_by_callbacks(length)
    futures[0].set_result(0)
    assert [future.result(timeout=0) for future in futures] == list(range(length))


@pytest.mark.parametrize("done", [True, False], ids=["done", "never done"])
def test_a_long_chain_of_futures_is_freed_at_once(done: bool) -> None:
    futures = chain_by_callbacks(100_000)

    class Thing:
        pass

    thing = Thing()
    watch = weakref.ref(thing)
    futures[-1].add_done_callback(lambda done, thing=thing: None)  # type: ignore[misc]
    first = futures[0]
    del thing, futures
    if done:
        first.set_result(0)
    del first
    gc.collect()
    assert watch() is None


def test_a_chain_of_answers_within_answers_is_freed_at_once() -> None:
    answer: Future[Any] = Future()
    for _ in range(100_000):
        outer: Future[Any] = Future()
        outer.set_result(answer)
        answer = outer
    del answer, outer
    gc.collect()


def test_callbacks_that_a_callback_causes_come_after_those_that_were_due() -> None:
    called: list[str] = []
    first: Future[None] = Future()
    second: Future[None] = Future()
    third: Future[None] = Future()

    def complete_others(done: Future[None]) -> None:
        called.append("first, 1")
        assert second.set_result(None)
        assert third.set_result(None)
        assert second.done(), "its answer is there, though its callbacks were not called yet"
        called.append("first, 1 is over")

    first.add_done_callback(complete_others)
    first.add_done_callback(lambda done: called.append("first, 2"))
    second.add_done_callback(lambda done: called.append("second, 1"))
    second.add_done_callback(lambda done: called.append("second, 2"))
    third.add_done_callback(lambda done: called.append("third"))
    first.set_result(None)
    assert called == ["first, 1", "first, 1 is over", "first, 2", "second, 1", "second, 2", "third"]


def test_a_callback_that_adds_itself_to_a_future_that_is_done_takes_no_stack() -> None:
    count = 0

    def again(future: Future[int]) -> None:
        nonlocal count
        count += 1
        if count < 100_000:
            _done().add_done_callback(again)

    _done().add_done_callback(again)
    assert count == 100_000


def test_a_callback_that_asks_again_what_is_answered_already_goes_on_to_its_end() -> None:
    class Echo(Actor[int]):
        def receive(self, message: int) -> int:
            return message

    answers: list[int] = []
    over = threading.Event()

    with ActorSystem(workers=1) as system:
        ref = system.spawn(Echo, dedicated=True)

        def again(future: Future[int]) -> None:
            answers.append(future.result(0))
            if len(answers) == 5000:
                over.set()
                return
            ref.ask(len(answers)).add_done_callback(again)

        ref.ask(0).add_done_callback(again)
        assert over.wait(60)
    assert answers == list(range(5000))


def test_callbacks_of_a_future_that_is_done_come_in_the_order_in_which_they_were_added() -> None:
    seen: list[str] = []

    def outer(future: Future[int]) -> None:
        other = _done()
        other.add_done_callback(lambda future: seen.append("first"))
        other.add_done_callback(lambda future: seen.append("second"))
        seen.append("outer")

    _done().add_done_callback(outer)
    assert seen == ["outer", "first", "second"]


def _done() -> Future[int]:
    future: Future[int] = Future()
    future.set_result(1)
    return future


def test_a_callback_may_wait_for_what_other_callbacks_of_its_thread_do() -> None:
    first: Future[int] = Future()
    second: Future[int] = Future()
    third: Future[int] = Future()
    answers: list[int] = []

    def wait_for_third(done: Future[int]) -> None:
        second.set_result(done.result() + 1)
        answers.append(third.result(timeout=0))

    first.add_done_callback(wait_for_third)
    second.add_done_callback(pass_to(third))
    first.set_result(1)
    assert answers == [3]


class Doubler(Actor[Any]):
    def receive(self, message: int) -> int:
        return 2 * message


def test_an_answer_given_within_a_callback_calls_back_within_it() -> None:
    called: list[str] = []
    with ManualSystem() as system:
        doubler = system.spawn(Doubler)
        first: Future[None] = Future()

        def ask(done: Future[None]) -> None:
            doubler.ask(1).add_done_callback(lambda answer: called.append("inner"))
            system.run_until_idle()
            called.append("outer")

        first.add_done_callback(ask)
        first.add_done_callback(lambda done: called.append("next"))
        first.set_result(None)
    assert called == ["inner", "outer", "next"]


def test_a_callback_that_raises_does_not_keep_others_from_being_called() -> None:
    first: Future[int] = Future()
    second: Future[int] = Future()

    def complete_and_fail(done: Future[int]) -> None:
        second.set_result(2)
        raise LookupError("a broken callback")

    called: list[Future[int]] = []
    first.add_done_callback(complete_and_fail)
    first.add_done_callback(called.append)
    second.add_done_callback(called.append)
    first.set_result(1)
    assert called == [first, second]


def test_threads_that_complete_chains_at_the_same_time_do_not_call_for_each_other() -> None:
    chains = [chain_by_callbacks(2_000) for _ in range(4)]
    callers: list[set[int]] = [set() for _ in chains]
    for chain, seen in zip(chains, callers, strict=True):
        for future in chain:
            future.add_done_callback(lambda done, seen=seen: seen.add(threading.get_ident()))  # type: ignore[misc]
    threads = [threading.Thread(target=chain[0].set_result, args=(0,)) for chain in chains]
    for thread in threads:
        thread.start()
    identities = {thread.ident for thread in threads}
    for thread in threads:
        thread.join(30)
    assert all(future.done() for chain in chains for future in chain)
    assert [len(seen) for seen in callers] == [1] * 4
    assert set.union(*callers) <= identities


@pytest.mark.parametrize("callback", [None, Future()])
def test_a_callback_that_cannot_be_called_is_refused(callback: Any) -> None:
    with pytest.raises(TypeError, match="expects a callable that takes a future, got"):
        Future().add_done_callback(callback)


# --- exceptions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", ["s", ValueError])
def test_set_exception_takes_exceptions_only(error: Any) -> None:
    future: Future[Any] = Future()
    with pytest.raises(TypeError, match=r"expects an exception, got .*"):
        future.set_exception(error)
    assert not future.done()


@pytest.mark.parametrize("error", [StopIteration(1), StopAsyncIteration(), GeneratorExit()])
def test_an_exception_that_ends_who_awaits_is_refused(error: BaseException) -> None:
    future: Future[Any] = Future()
    with pytest.raises(TypeError, match=f"does not accept {type(error).__name__}"):
        future.set_exception(error)
    assert not future.done()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()])
def test_an_exception_that_an_actor_may_fail_with_can_be_handed_on(error: BaseException) -> None:
    future: Future[Any] = Future()
    assert future.set_exception(error)
    assert future.exception() is error


def test_a_traceback_does_not_grow_each_time_it_is_raised(system: ActorSystem) -> None:
    class Failing(Actor[Any]):
        def receive(self, message: Any) -> None:
            raise LookupError("as told")

    future = system.spawn(Failing).ask("x")

    async def wait() -> None:
        await future

    def by_result() -> None:
        future.result(timeout=30)

    def by_asyncio() -> None:
        asyncio.run(wait())

    def by_exception() -> None:
        error = future.exception(timeout=30)
        assert error is not None
        raise error

    for ask_again in (by_result, by_asyncio, by_exception):
        lengths = set()
        for _ in range(10):
            with pytest.raises(LookupError) as caught:
                ask_again()
            frames = traceback.extract_tb(caught.value.__traceback__)
            assert frames[-1].name == "receive", "it still says where it comes from"
            lengths.add(len(frames))
        assert len(lengths) == 1, f"{ask_again.__name__}: {lengths}"


def test_an_exception_that_was_never_raised_does_not_grow_either() -> None:
    future: Future[Any] = Future()
    future.set_exception(LookupError("made by hand"))
    lengths = set()
    for _ in range(5):
        with pytest.raises(LookupError) as caught:
            future.result()
        lengths.add(len(traceback.extract_tb(caught.value.__traceback__)))
    assert len(lengths) == 1


def test_an_exception_that_cannot_be_written_to_is_raised_as_it_is() -> None:
    @dataclass(frozen=True)
    class Frozen(Exception):
        reason: str

    future: Future[Any] = Future()
    error = Frozen("for ever")
    future.set_exception(error)
    assert future.exception() is error
    assert future.exception() is error


# --- waits that were given up ---------------------------------------------------------------------


def waiting(future: Future[Any]) -> list[str]:
    """The names of the classes of what waits for a future."""
    found = []
    for referent in gc.get_referents(future):
        found += referent if isinstance(referent, list) else [referent]
    return [name for each in found if (name := type(each).__name__).endswith("Wake")]


def test_looking_for_an_answer_repeatedly_leaves_nothing_behind() -> None:
    future: Future[int] = Future()
    called: list[Future[int]] = []
    future.add_done_callback(called.append)
    for _ in range(10):
        with pytest.raises(AskTimeout):
            future.result(timeout=0)
    assert waiting(future) == []
    future.set_result(1)
    assert called == [future]


def test_an_await_that_is_cancelled_leaves_nothing_behind() -> None:
    future: Future[int] = Future()

    async def wait() -> int:
        return await future

    async def cancel_and_wait() -> int:
        cancelled, waits = asyncio.ensure_future(wait()), asyncio.ensure_future(wait())
        await asyncio.sleep(0)
        assert waiting(future) == ["AsyncioWake"] * 2
        cancelled.cancel()
        await asyncio.wait([cancelled])
        assert waiting(future) == ["AsyncioWake"]
        future.set_result(1)
        return await waits

    assert asyncio.run(cancel_and_wait()) == 1
