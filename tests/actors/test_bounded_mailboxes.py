"""Bounded mailboxes: policies for a sender when the mailbox is full."""

import signal
import threading
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorSystem,
    BoundedMailbox,
    ConfigError,
    DeadLetter,
    MailboxFull,
)
from callboard.testing import ManualSystem
from tests.actors.supervised import Parent


class Gated(Actor[Any]):
    """Waits in `on_start` until the gate opens, then keeps what comes."""

    def __init__(self, entered: threading.Event, gate: threading.Event, seen: list[Any]) -> None:
        self.entered, self.gate, self.seen = entered, gate, seen

    def on_start(self) -> None:
        self.entered.set()
        assert self.gate.wait(60)

    def receive(self, message: Any) -> Any:
        self.seen.append(message)
        return message


class Box:
    """A gated actor with a mailbox of two messages, which are there."""

    def __init__(self, system: ActorSystem, mailbox: BoundedMailbox) -> None:
        self.gate, entered = threading.Event(), threading.Event()
        self.seen: list[Any] = []
        self.ref: ActorRef[Any] = system.spawn(
            Gated, entered, self.gate, self.seen, mailbox=mailbox, dedicated=True
        )
        assert entered.wait(30)
        self.ref.tell_many([1, 2])


def test_fail_raises_and_names_the_actor_and_the_capacity(system: ActorSystem) -> None:
    box = Box(system, BoundedMailbox(2, "fail"))
    with pytest.raises(MailboxFull, match=f"the mailbox of {box.ref.path} is full: 2 messages"):
        box.ref.tell(3)
    asked = box.ref.ask(4)
    assert isinstance(asked.exception(timeout=30), MailboxFull)
    assert box.ref.statistics().queue == 2
    box.gate.set()
    system.drain()
    assert box.seen == [1, 2]
    assert box.ref.ask(5).result(timeout=30) == 5


def test_block_gives_up_after_its_timeout(system: ActorSystem) -> None:
    box = Box(system, BoundedMailbox(2, "block", timeout=0.01))
    with pytest.raises(MailboxFull, match=r"stayed full \(2 messages\) for 0.01 s"):
        box.ref.tell(3)
    box.gate.set()
    system.drain()
    assert box.seen == [1, 2]


@pytest.mark.parametrize("overflow", ["block", "help"])
def test_a_thread_that_waits_for_room_gets_it(system: ActorSystem, overflow: str) -> None:
    box = Box(system, BoundedMailbox(2, overflow))
    sender = threading.Thread(target=box.ref.tell_many, args=(range(3, 200),))
    sender.start()
    box.gate.set()
    sender.join(60)
    assert not sender.is_alive()
    system.drain()
    assert box.seen == list(range(1, 200))


def test_dropped_messages_are_counted_and_dropped_asks_fail(system: ActorSystem) -> None:
    newest = Box(system, BoundedMailbox(2, "drop_newest"))
    newest.ref.tell(3)
    assert isinstance(newest.ref.ask(4).exception(timeout=30), MailboxFull)
    oldest = Box(system, BoundedMailbox(2, "drop_oldest"))
    first = oldest.ref.ask(3)
    oldest.ref.tell_many([4, 5])
    assert isinstance(first.exception(timeout=30), MailboxFull)
    for box in [newest, oldest]:
        box.gate.set()
    system.drain()
    assert newest.seen == [1, 2]
    assert oldest.seen == [4, 5]
    assert system.dead_letters.reasons == {"dropped_newest": 2, "dropped_oldest": 3}


def test_throttle_sends_in_the_end_what_the_capacity_has_no_room_for(system: ActorSystem) -> None:
    box = Box(system, BoundedMailbox(2, "throttle", timeout=0.001))
    box.ref.tell_many([3, 4])
    assert box.ref.statistics().queue == 4
    box.gate.set()
    system.drain()
    assert box.seen == [1, 2, 3, 4]


@pytest.mark.parametrize("when", ["start", "await", "stop"])
def test_an_actor_that_fills_its_own_mailbox_between_messages_is_told_at_once(when: str) -> None:
    class Self(Actor[Any]):
        def fill(self) -> None:
            try:
                self.ref.tell_many(range(10))
            except MailboxFull as error:
                errors.append(str(error))

        def on_start(self) -> None:
            if when == "start":
                self.fill()

        async def receive(self, message: Any) -> None:
            if message == "go" and when == "await":
                await self.sleep(1)
                self.fill()

        def on_stop(self) -> None:
            if when == "stop":
                self.fill()

    errors: list[str] = []
    with ManualSystem() as system:
        system.spawn(Self, mailbox=BoundedMailbox(3)).tell("go")
        system.advance(2)
    (error,) = errors
    assert "in the middle of the message that led to this send" in error


def test_an_actor_that_fills_its_own_mailbox_is_told_at_once(system: ActorSystem) -> None:
    class Self(Actor[Any]):
        def receive(self, message: Any) -> None:
            if message == "go":
                self.ref.tell_many(range(10))

    ref = system.spawn(Self, mailbox=BoundedMailbox(3))
    error = ref.ask("go").exception(timeout=30)
    assert isinstance(error, MailboxFull)
    assert "in the middle of the message that led to this send" in str(error)


@pytest.mark.parametrize("overflow", ["block", "help"])
def test_a_fast_producer_and_slow_consumer_lose_nothing(system: ActorSystem, overflow: str) -> None:
    class Producer(Actor[Any]):
        def __init__(self, target: ActorRef[Any]) -> None:
            self.target = target

        def receive(self, message: range) -> None:
            for number in message:
                self.target.tell(number)

    class Consumer(Actor[Any]):
        def receive(self, message: Any) -> Any:
            if message == "report":
                return seen
            seen.append(message)
            return None

    seen: list[Any] = []
    consumer = system.spawn(Consumer, mailbox=BoundedMailbox(4, overflow))
    for index in range(3):
        producer = system.spawn(Producer, consumer)
        producer.tell(range(index * 1_000, index * 1_000 + 500))
    system.drain()
    assert len(seen) == 1_500
    for index in range(3):
        numbers = [number for number in seen if number // 1_000 == index]
        assert numbers == list(range(index * 1_000, index * 1_000 + 500))


def test_an_overflow_policy_that_does_not_exist_is_refused() -> None:
    wrong = "a mailbox's overflow must be one of block, help, .* got 'explode'"
    with pytest.raises(ConfigError, match=wrong):
        BoundedMailbox(2, "explode")


def test_a_send_that_ctrl_c_breaks_off_takes_no_room(manual: ManualSystem) -> None:
    def leave(letter: DeadLetter) -> None:
        signal.raise_signal(signal.SIGINT)

    ref = manual.spawn(Parent, mailbox=BoundedMailbox(1, "drop_oldest"))
    manual.dead_letters.subscribe(leave)
    oldest = ref.ask("a")
    with pytest.raises(KeyboardInterrupt):
        ref.tell("b")
    assert isinstance(oldest.exception(timeout=30), MailboxFull)
    assert ref.statistics().queue == 0
