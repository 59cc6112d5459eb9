"""Topics: publish and subscribe."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from callboard import Actor, ActorSystem, BoundedMailbox, DeadLetter, Future, MailboxFull
from callboard.routers import Subscribe, Topic, Unsubscribe
from callboard.testing import ManualSystem
from tests.routers.test_routers import LIMIT, keepers


@pytest.mark.parametrize("seed", range(10))
def test_subscribers_get_the_classes_that_they_want_once(seed: int) -> None:
    with ManualSystem(seed=seed) as system:
        kept, (texts, numbers, everything) = keepers(system, 3)
        topic = system.spawn(Topic)
        topic.tell_many([Subscribe(texts, str), Subscribe(numbers, int), Subscribe(numbers, bool)])
        topic.tell(Subscribe(everything))
        topic.tell_many(["a", 1, True, 2.5, "b"])
        system.run_until_idle()
    assert kept == [["a", "b"], [1, True], ["a", 1, True, 2.5, "b"]]


def test_no_more_messages_after_unsubscribing_or_the_end() -> None:
    with ManualSystem() as system:
        kept, (first, second) = keepers(system, 2)
        topic = system.spawn(Topic)
        topic.tell_many([Subscribe(first), Subscribe(second), 1, Unsubscribe(first), 2])
        topic.tell(Unsubscribe(first))
        system.run_until_idle()
        second.stop()
        system.run_until_idle()
        topic.tell(3)
        system.run_until_idle()
        assert system.dead_letters.count == 0
    assert kept == [[1], [1, 2]]


def test_each_publisher_has_its_order() -> None:
    with ActorSystem() as system:
        kept, refs = keepers(system, 2)
        topic = system.spawn(Topic)
        topic.tell_many([Subscribe(ref) for ref in refs])

        def publish(thread: int) -> None:
            for number in range(500):
                topic.tell((thread, number))

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(publish, range(4)))
        system.drain(LIMIT)
    for part in kept:
        assert len(part) == 2_000
        for thread in range(4):
            assert [number for sender, number in part if sender == thread] == list(range(500))


def test_subscriptions_say_what_is_wrong() -> None:
    wrong: Any = 3
    with pytest.raises(TypeError, match="expects a ref, got 3"):
        Subscribe(wrong)
    with ManualSystem() as system:
        _, refs = keepers(system, 1)
        with pytest.raises(TypeError, match="expects a class, got 3"):
            Subscribe(refs[0], wrong)


class Unwilling:
    """A recipient that is no actor, and raises."""

    def tell(self, message: Any) -> None:
        raise ValueError(f"not {message}")

    tell_many = ask = tell


class Waiting(Actor[Any]):
    """Waits in the middle of each message."""

    def __init__(self, gate: Future[None], kept: list[Any]) -> None:
        self.gate = gate
        self.kept = kept

    async def receive(self, message: Any) -> None:
        self.kept.append(message)
        await self.gate


@pytest.mark.parametrize("seed", range(5))
def test_the_others_are_told_though_a_subscriber_refuses_messages(seed: int) -> None:
    letters: list[DeadLetter] = []
    full: list[Any] = []
    gate: Future[None] = Future()
    unwilling: Any = Unwilling()
    with ManualSystem(seed=seed) as system:
        system.dead_letters.subscribe(letters.append)
        kept, (last,) = keepers(system, 1)
        slow = system.spawn(Waiting, gate, full, mailbox=BoundedMailbox(1, overflow="fail"))
        topic = system.spawn(Topic)
        topic.tell_many([Subscribe(unwilling, str), Subscribe(slow, int), Subscribe(last)])
        topic.tell_many([1, "text", 2, 3])
        system.run_until_idle()
        gate.set_result(None)
        system.run_until_idle()
        assert topic.is_alive
        system.dead_letters.unsubscribe(letters.append)
    assert kept == [[1, "text", 2, 3]]
    refused = [letter.message for letter in letters]
    assert len(full) < 3
    assert sorted(full + refused, key=str) == [1, 2, 3, "text"]
    for letter in letters:
        is_text = letter.message == "text"
        assert (letter.reason, letter.sender) == ("refused", topic)
        assert letter.recipient == (topic if is_text else slow)
        assert isinstance(letter.error, ValueError if is_text else MailboxFull)
