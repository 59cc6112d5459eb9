"""Cancelling an ask: its message, its handler, and the actors that wait for it."""

import asyncio
import threading
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorSystem,
    AskCancelled,
    BoundedMailbox,
    Future,
    PriorityMailbox,
    Supervision,
)
from callboard.testing import ManualSystem
from tests.actors.napping import Napping, hosts, letters_of

DEADLINE = 30.0

# --- the asker's future ---------------------------------------------------------------------------


def test_a_cancelled_future_is_done_and_fails_and_stays_so() -> None:
    future: Future[int] = Future()
    seen: list[bool] = []
    future.add_done_callback(lambda done: seen.append(done.cancelled()))
    assert not future.cancelled()
    assert future.cancel()
    assert future.done()
    assert future.cancelled()
    assert seen == [True]
    with pytest.raises(AskCancelled, match="was cancelled"):
        future.result(0)
    assert not future.cancel()
    assert not future.set_result(1)
    assert not future.set_exception(ValueError())
    assert future.cancelled()
    assert "cancelled" in repr(future)


def test_a_future_that_is_done_cannot_be_cancelled() -> None:
    future: Future[int] = Future()
    future.set_result(1)
    assert not future.cancel()
    assert not future.cancelled()
    assert future.result(0) == 1


def test_a_callback_that_is_removed_is_not_called() -> None:
    future: Future[int] = Future()
    seen: list[str] = []

    class Noting:
        def note(self, done: Future[int]) -> None:
            seen.append("bound")

    noting = Noting()
    first = lambda done: seen.append("first")  # noqa: E731
    future.add_done_callback(first)
    future.add_done_callback(noting.note)
    future.add_done_callback(lambda done: seen.append("second"))
    future.add_done_callback(first)
    assert future.remove_done_callback(first) == 2
    assert future.remove_done_callback(first) == 0
    assert future.remove_done_callback(noting.note) == 1
    future.set_result(1)
    assert seen == ["second"]
    assert future.remove_done_callback(first) == 0


@pytest.mark.parametrize("in_asyncio", [False, True])
def test_a_waiter_for_a_cancelled_ask_gets_the_error(in_asyncio: bool) -> None:
    with ActorSystem(workers=1) as system:
        napping = system.spawn(Napping, [])
        answer = napping.ask(1e6)

        async def main() -> None:
            asyncio.get_running_loop().call_soon(answer.cancel)
            with pytest.raises(AskCancelled):
                await answer

        if in_asyncio:
            asyncio.run(asyncio.wait_for(main(), DEADLINE))
        else:
            threading.Timer(0.0, answer.cancel).start()
            with pytest.raises(AskCancelled):
                answer.result(DEADLINE)


# --- the message ----------------------------------------------------------------------------------


@hosts
def test_a_cancelled_handler_gets_cancelled_error_and_its_actor_goes_on(event_loop: bool) -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        letters = letters_of(system)
        napping = system.spawn(Napping, log, event_loop=event_loop)
        first, second = napping.ask(100), napping.ask(1)
        system.run_until_idle()
        assert first.cancel()
        assert second.result() == 1
        assert system.now == 1
    assert log == [("begun", 100), ("cancelled", 100, False), ("begun", 1), ("ended", 1)]
    assert [(letter.message, letter.reason) for letter in letters] == [(100, "cancelled")]
    assert system.dead_letters.failure_count == 0


def test_a_slow_handler_does_not_hold_a_drain_up_once_it_is_cancelled() -> None:
    with ActorSystem(workers=2) as system:
        log: list[Any] = []
        answer = system.spawn(Napping, log).ask(1e6)
        assert answer.cancel()
        system.drain(DEADLINE)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mailbox": BoundedMailbox(10)},
        {"mailbox": BoundedMailbox(10, overflow="drop_oldest")},
        {"mailbox": PriorityMailbox(lambda message: 0)},
        {"context": "sender"},
        {"event_loop": True},
    ],
    ids=["plain", "bounded", "drop_oldest", "priority", "context", "event loop"],
)
def test_a_message_that_waits_is_skipped(options: dict[str, Any]) -> None:
    log: list[Any] = []
    with ManualSystem() as system:
        letters = letters_of(system)
        napping = system.spawn(Napping, log, **options)
        answers = [napping.ask(n) for n in range(1, 5)]
        answers[1].cancel()
        answers[2].cancel()
        assert answers[3].result() == 4
        assert napping.ask(7).result() == 7
    assert [entry for entry in log if entry[0] == "begun"] == [("begun", n) for n in (1, 4, 7)]
    assert [(letter.message, letter.reason) for letter in letters] == [
        (2, "cancelled"),
        (3, "cancelled"),
    ]


def test_a_message_that_was_put_aside_is_dropped_there() -> None:
    class Shop(Actor[str]):
        def receive(self, message: str) -> Any:
            if message == "open":
                self.become(lambda message: sold.append(message))
                self.unstash_all()
            else:
                self.stash()

    sold: list[str] = []
    with ManualSystem() as system:
        letters = letters_of(system)
        shop = system.spawn(Shop)
        cart, tea = shop.ask("cart"), shop.ask("tea")
        system.run_until_idle()
        cart.cancel()
        shop.tell("open")
        assert tea.result() is None
    assert sold == ["tea"]
    assert [letter.reason for letter in letters] == ["cancelled"]


async def test_a_message_that_waits_for_room_outside_is_skipped_too() -> None:
    log: list[Any] = []
    async with ActorSystem(workers=1) as system:
        napping = system.spawn(Napping, log, mailbox=BoundedMailbox(1))
        answers = [napping.ask(1e6), *(napping.ask(n / 1e6) for n in range(2, 6))]
        answers[3].cancel()
        answers[0].cancel()
        await answers[4]
    assert ("begun", 4 / 1e6) not in log
    assert ("begun", 5 / 1e6) in log


def test_receive_many_is_not_handed_a_cancelled_ask() -> None:
    class Many(Actor[int]):
        def receive(self, message: int) -> int:
            asked.append(message)
            return message

        def receive_many(self, messages: list[int]) -> None:
            told.extend(messages)

    asked: list[int] = []
    told: list[int] = []
    with ManualSystem(quantum=8) as system:
        many = system.spawn(Many)
        many.tell(0)
        first, second = many.ask(1), many.ask(2)
        many.tell(3)
        first.cancel()
        assert second.result() == 2
        system.run_until_idle()
    assert asked == [2]
    assert told == [0, 3]


def test_a_plain_handler_is_told_by_is_wanted() -> None:
    class Counting(Actor[str]):
        def receive(self, message: str) -> bool | None:
            wanted.append(self.is_wanted())
            if message == "wait":
                begun.set()
                assert go_on.wait(DEADLINE)
            wanted.append(self.is_wanted())
            return None

    wanted: list[bool] = []
    begun, go_on = threading.Event(), threading.Event()
    with ActorSystem(workers=1) as system:
        counting = system.spawn(Counting)
        counting.ask("at once").result(DEADLINE)
        counting.tell("told")
        answer = counting.ask("wait")
        assert begun.wait(DEADLINE)
        answer.cancel()
        go_on.set()
    assert wanted == [True, True, True, True, True, False]


def test_a_timeout_makes_an_answer_unwanted() -> None:
    class Late(Actor[str]):
        async def receive(self, message: str) -> None:
            await self.sleep(2)
            wanted.append(self.is_wanted())

    wanted: list[bool] = []
    with ManualSystem() as system:
        system.spawn(Late).ask("now", timeout=1)
        system.advance(5)
    assert wanted == [False]


@hosts
def test_a_handler_may_go_on_after_the_cancellation(event_loop: bool) -> None:
    class Careful(Actor[str]):
        async def receive(self, message: str) -> str:
            try:
                await self.sleep(100)
            except asyncio.CancelledError:
                await self.sleep(5)
                log.append("cleaned up")
            return message

    log: list[str] = []
    with ManualSystem() as system:
        letters = letters_of(system)
        answer = system.spawn(Careful, event_loop=event_loop).ask("clean")
        system.advance(1)
        answer.cancel()
        system.drain()
        assert system.now == 6
        with pytest.raises(AskCancelled):
            answer.result()
    assert log == ["cleaned up"]
    assert letters == []


def test_an_error_of_the_handler_after_the_cancellation_is_a_failure(manual: ManualSystem) -> None:
    class Careless(Actor[str]):
        async def receive(self, message: str) -> None:
            try:
                await self.sleep(100)
            except asyncio.CancelledError:
                raise LookupError("while cleaning up") from None

    ref = manual.spawn(Careless, supervision=Supervision("restart"))
    answer = ref.ask("clean")
    manual.run_until_idle()
    answer.cancel()
    manual.run_until_idle()
    assert manual.dead_letters.failure_count == 1
    assert ref.is_alive


def test_a_cancelled_error_that_nobody_caused_is_a_failure(manual: ManualSystem) -> None:
    class Odd(Actor[str]):
        def receive(self, message: str) -> None:
            raise asyncio.CancelledError

    answer = manual.spawn(Odd).ask("now")
    with pytest.raises(asyncio.CancelledError):
        answer.result()
    assert manual.dead_letters.failure_count == 1


def test_a_late_cancellation_ends_no_later_message(manual: ManualSystem) -> None:
    log: list[Any] = []
    napping = manual.spawn(Napping, log)
    first = napping.ask(1)
    second = napping.ask(2)
    first.result()
    assert not first.cancel()
    assert second.result() == 2


def test_an_actor_that_stops_with_its_ask_cancelled_ends_well(manual: ManualSystem) -> None:
    log: list[Any] = []
    for event_loop in (False, True):
        napping = manual.spawn(Napping, log, event_loop=event_loop)
        answers = [napping.ask(100), napping.ask(100)]
        manual.run_until_idle()
        for answer in answers:
            answer.cancel()
        napping.stop()
        assert manual.run_until(napping.ended.done)
        assert not napping.ask(1).cancelled()
        answers[0].cancel()
