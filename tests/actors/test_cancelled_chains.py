"""Cancelling an ask: other asks and futures that depend on it, at each await, in each order."""

import asyncio
import concurrent.futures
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorSystem,
    AskDeadlock,
    BoundedMailbox,
    Future,
    as_concurrent,
    gather,
)
from callboard.testing import ManualSystem, replay
from tests.actors.napping import Napping, hosts, letters_of
from tests.waiting import in_threads

DEADLINE = 30.0

# --- asks of the asked actor ----------------------------------------------------------------------


class Passing(Actor[Any]):
    """Asks another, and awaits the answer or hands the future on."""

    def __init__(self, to: ActorRef[Any], hands_on: bool = False) -> None:
        self.to = to
        self.hands_on = hands_on

    def receive(self, message: Any) -> Any:
        return self.to.ask(message) if self.hands_on else self.wait(message)

    async def wait(self, message: Any) -> Any:
        return await gather(self.to.ask(message))


@hosts
@pytest.mark.parametrize("hands_on", [False, True], ids=["awaits", "hands on"])
def test_cancelling_cancels_the_ask_that_is_awaited(event_loop: bool, hands_on: bool) -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        napping = system.spawn(Napping, log)
        passing = system.spawn(Passing, napping, hands_on, event_loop=event_loop)
        answer = passing.ask(100)
        system.advance(1)
        answer.cancel()
        system.drain()
        assert system.now == 1
    assert log == [("begun", 100), ("cancelled", 100, False)]


def test_an_answer_that_others_wait_for_goes_on(manual: ManualSystem) -> None:
    class Caching(Actor[Any]):
        def __init__(self, to: ActorRef[Any]) -> None:
            self.to = to
            self.answers: dict[Any, Future[Any]] = {}

        def receive(self, message: Any) -> Any:
            if message not in self.answers:
                self.answers[message] = self.to.ask(message)
            return self.answers[message]

    caching = manual.spawn(Caching, manual.spawn(Napping, []))
    first, second = caching.ask(5), caching.ask(5)
    manual.run_until_idle()
    first.cancel()
    assert second.result() == 5


def test_a_promise_is_its_actors_and_is_not_cancelled_with_an_ask(manual: ManualSystem) -> None:
    class Owing(Actor[str]):
        def receive(self, message: str) -> Future[str]:
            return promise

    promise: Future[str] = Future()
    owing = manual.spawn(Owing)
    first = owing.ask("one")
    manual.run_until_idle()
    assert owing.info().pending_answers == 1
    first.cancel()
    assert owing.info().pending_answers == 0
    manual.drain(0)
    assert not promise.done()
    promise.set_result("late")
    assert owing.ask("two").result() == "late"


def test_a_drain_that_is_cancelled_is_given_up() -> None:
    with ActorSystem(workers=1) as system:
        answer = system.spawn(Napping, []).ask(1e6)
        drained: Any = system.adrain()
        assert drained.cancel()
        drained.thread.join(DEADLINE)
        assert not drained.thread.is_alive()
        assert drained.cancelled()
        answer.cancel()


async def test_a_message_that_waits_for_room_is_taken_back_when_its_future_is_cancelled() -> None:
    log: list[Any] = []
    async with ActorSystem(workers=1) as system:
        napping = system.spawn(Napping, log, mailbox=BoundedMailbox(1))
        first = napping.ask(1e6)
        told = [napping.atell(n / 1e6) for n in range(1, 5)]
        assert told[3].cancel()
        first.cancel()
        for each in told[:3]:
            await each
    assert ("begun", 4 / 1e6) not in log
    assert ("begun", 3 / 1e6) in log


# --- futures of others ----------------------------------------------------------------------------


def test_a_future_of_concurrent_futures_that_is_made_of_ours_cancels_it() -> None:
    ours: Future[int] = Future()
    theirs = as_concurrent(ours)
    assert theirs.cancel()
    assert ours.cancelled()
    assert concurrent.futures.wait([theirs], 0).done == {theirs}
    other: Future[int] = Future()
    theirs = as_concurrent(other)
    other.cancel()
    assert theirs.cancelled()
    assert concurrent.futures.wait([theirs], 0).done == {theirs}


async def test_asyncio_cancels_ours_through_a_wrapped_future() -> None:
    ours: Future[int] = Future()
    wrapped = asyncio.wrap_future(as_concurrent(ours))
    wrapped.cancel()
    with pytest.raises(asyncio.CancelledError):
        await wrapped
    await asyncio.sleep(0)  # for the callbacks of its end
    assert ours.cancelled()


def test_a_cancelled_ask_cancels_the_work_of_an_executor_that_its_handler_returned() -> None:
    class Submitting(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return theirs

    theirs: concurrent.futures.Future[int] = concurrent.futures.Future()
    with ManualSystem() as system:
        answer = system.spawn(Submitting).ask("work")
        system.run_until_idle()
        answer.cancel()
        assert theirs.cancelled()
        system.drain(0)


def test_a_circle_through_map_is_found(manual: ManualSystem) -> None:
    class Asker(Actor[Any]):
        other: ActorRef[Any] | None = None

        async def receive(self, message: Any) -> Any:
            if message != "ask":
                self.other = message
                return None
            assert self.other is not None
            return await self.other.ask(message).map(lambda answer: answer)

    ann, ben = manual.spawn(Asker), manual.spawn(Asker)
    ann.tell(ben)
    ben.tell(ann)
    with pytest.raises(AskDeadlock):
        ann.ask("ask").result()


# --- at every await, in every order ---------------------------------------------------------------


class Steps(Actor[int]):
    """Awaits in each way there is, one after the other, and counts how its messages end."""

    def __init__(self, helper: ActorRef[Any], ends: dict[str, int]) -> None:
        self.helper = helper
        self.ends = ends

    async def receive(self, message: int) -> int:
        try:
            await self.sleep(1)
            await self.helper.ask(1)
            await gather(self.helper.ask(2), self.helper.ask(3))
            await self.helper.ask(4).map(str)
            await self.deeper()
        except asyncio.CancelledError:
            self.ends["cancelled"] += 1
            raise
        self.ends["ended"] += 1
        return message

    async def deeper(self) -> None:
        await self.sleep(1)
        await self.helper.ask(5)


class Helper(Actor[int]):
    async def receive(self, message: int) -> int:
        await self.sleep(message / 10)
        return message


@hosts
@replay(seeds=60)
def test_a_cancelled_ask_loses_nothing_at_any_await(event_loop: bool, seed: int) -> None:
    ends = {"cancelled": 0, "ended": 0}
    with ManualSystem(seed) as system:
        letters = letters_of(system)
        helper = system.spawn(Helper)
        steps = system.spawn(Steps, helper, ends, event_loop=event_loop)
        answers = [steps.ask(n) for n in range(3)]
        for _ in range(seed):
            if not system.step():
                system.advance(0.05)
        cancelled = answers[1].cancel() + answers[0].cancel()
        assert answers[2].result() == 2
        assert answers[0].done()
        system.drain()
        skipped = [letter for letter in letters if letter.recipient is steps]
        assert {letter.reason for letter in skipped} <= {"cancelled"}
        begun = ends["cancelled"] + ends["ended"]
        not_begun = len(skipped) - ends["cancelled"]
        assert begun + not_begun == 3
        assert ends["ended"] >= 3 - cancelled
        assert system.dead_letters.failure_count == 0
        assert helper.ask(1).result() == 1


def test_asks_that_are_cancelled_by_other_threads_all_end() -> None:
    log: list[Any] = []
    with ActorSystem(workers=2) as system:
        napping = [system.spawn(Napping, log) for _ in range(4)]
        answers = [ref.ask(n % 3 / 1e4) for n in range(400) for ref in napping]

        def cancel(mine: list[Future[Any]]) -> None:
            for future in mine:
                future.cancel()

        in_threads(cancel, [answers[i::3] for i in range(2)])
        system.drain(DEADLINE)
    assert all(answer.done() for answer in answers)
    assert all(answer.result(0) is not None for answer in answers[2::3])
    handled = sum(1 for entry in log if entry[0] in ("ended", "cancelled"))
    assert sum(1 for entry in log if entry[0] == "begun") == handled
