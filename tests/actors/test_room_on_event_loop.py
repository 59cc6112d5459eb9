"""An actor on the event loop that sends to a full mailbox waits, and the loop does not."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, DeadLetter, Future, MailboxFull
from tests.remote.conftest import eventually

WAITING = ["block", "help", "throttle"]
PATIENCE = 600.0  # seconds, of mailboxes whose senders are to go on long before

Deed = Callable[["Doer"], Coroutine[Any, Any, Any]]


class Doer(Actor[Deed]):
    """Does what it is told, on the event loop."""

    async def receive(self, deed: Deed) -> Any:
        return await deed(self)


class Collector(Actor[int]):
    """Remembers what came; on the event loop, too."""

    def __init__(self, seen: list[int]) -> None:
        self.seen = seen

    async def receive(self, number: int) -> int:
        await asyncio.sleep(0)
        self.seen.append(number)
        return number


class Closed(Actor[int]):
    """Begins with its first message when a future from outside is done."""

    def __init__(self, outside: "Future[None]", seen: list[int]) -> None:
        self.outside, self.seen = outside, seen

    async def receive(self, number: int) -> None:
        await self.outside
        self.seen.append(number)


class Scene:
    """A receiver whose mailbox stays full until `outside` is done, and a sender."""

    def __init__(self, system: ActorSystem, overflow: str, timeout: float = PATIENCE) -> None:
        self.outside: Future[None] = Future()
        self.seen: list[int] = []
        self.mailbox = BoundedMailbox(2, overflow, timeout=timeout)
        self.receiver = system.spawn(Closed, self.outside, self.seen, mailbox=self.mailbox)
        self.sender = system.spawn(Doer, event_loop=True)
        self.bystander = system.spawn(Doer, event_loop=True)
        self.receiver.tell(0)
        while self.receiver.statistics().queue != 0:  # it is in the middle of that
            pass
        self.receiver.tell(1)
        self.receiver.tell(2)

    def prove_that_the_loop_runs(self) -> None:
        async def sleep(actor: Doer) -> str:
            await asyncio.sleep(0)
            return "awake"

        assert self.bystander.ask(sleep).result(60) == "awake"


def sending(target: ActorRef[int], numbers: range) -> Deed:
    async def send(actor: Doer) -> str:
        for number in numbers:
            target.tell(number)
        return "sent"

    return send


@pytest.mark.parametrize("overflow", WAITING)
def test_a_sender_and_a_receiver_on_the_loop_both_end(system: ActorSystem, overflow: str) -> None:
    seen: list[int] = []
    mailbox = BoundedMailbox(3, overflow, timeout=PATIENCE)
    collector = system.spawn(Collector, seen, event_loop=True, mailbox=mailbox)
    sender = system.spawn(Doer, event_loop=True)
    assert sender.ask(sending(collector, range(100))).result(60) == "sent"
    system.drain()
    assert seen == list(range(100))
    assert collector.statistics().peak == 3


@pytest.mark.parametrize("overflow", WAITING)
def test_the_loop_runs_others_during_a_wait_for_room(system: ActorSystem, overflow: str) -> None:
    scene = Scene(system, overflow)
    sent = scene.sender.ask(sending(scene.receiver, range(3, 100)))
    for _ in range(10):
        scene.prove_that_the_loop_runs()
    assert not sent.done()
    scene.outside.set_result(None)
    assert sent.result(60) == "sent"
    system.drain()
    assert scene.seen == list(range(100))


def test_an_actor_without_room_is_held_at_its_next_await(system: ActorSystem) -> None:
    scene = Scene(system, "block")
    steps: list[str] = []

    async def part(target: ActorRef[int], name: str) -> None:
        steps.append(f"{name} begins")
        await asyncio.sleep(0)
        steps.append(f"{name} ends")

    async def send(actor: Doer) -> list[str]:
        scene.receiver.tell(3)
        steps.append("told")
        await asyncio.gather(part(scene.receiver, "a"), part(scene.receiver, "b"))
        return steps

    sent = scene.sender.ask(send)
    scene.prove_that_the_loop_runs()
    scene.prove_that_the_loop_runs()
    assert steps == ["told"]
    scene.outside.set_result(None)
    assert sent.result(60) == ["told", "a begins", "b begins", "a ends", "b ends"]


def test_an_ask_waits_for_room_with_what_was_told_before_it(system: ActorSystem) -> None:
    seen: list[int] = []
    mailbox = BoundedMailbox(1, timeout=PATIENCE)
    collector = system.spawn(Collector, seen, event_loop=True, mailbox=mailbox)

    async def send(actor: Doer) -> Any:
        for number in range(10):
            collector.tell(number)
        return await collector.ask(10)

    assert system.spawn(Doer, event_loop=True).ask(send).result(60) == 10
    assert seen == list(range(11))


def test_no_room_in_time_raises_at_the_next_await(system: ActorSystem) -> None:
    scene = Scene(system, "block", timeout=0.01)
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)

    async def send(actor: Doer) -> str:
        scene.receiver.tell_many([3, 4])
        answer = scene.receiver.ask(5)
        try:
            await asyncio.sleep(0)
        except MailboxFull as error:
            with pytest.raises(MailboxFull):
                await answer
            return str(error)
        return "no error"

    said = scene.sender.ask(send).result(60)
    assert said == (f"the mailbox of {scene.receiver.path} stayed full (2 messages) for 0.01 s")
    assert [(letter.message, letter.reason) for letter in letters] == [
        (3, "refused"),
        (4, "refused"),
    ]
    assert scene.receiver.statistics().dropped == 3
    scene.outside.set_result(None)
    system.drain()
    assert scene.seen == [0, 1, 2]


def test_no_room_in_time_fails_a_handler_that_has_returned(system: ActorSystem) -> None:
    scene = Scene(system, "block", timeout=0.01)
    with pytest.raises(MailboxFull, match="stayed full"):
        scene.sender.ask(sending(scene.receiver, range(3, 5))).result(60)
    scene.outside.set_result(None)


def test_a_throttled_message_is_sent_all_the_same_in_its_order(system: ActorSystem) -> None:
    scene = Scene(system, "throttle", timeout=0.001)
    assert scene.sender.ask(sending(scene.receiver, range(3, 20))).result(60) == "sent"
    assert scene.seen == []
    scene.outside.set_result(None)
    system.drain()
    assert scene.seen == list(range(20))


@pytest.mark.parametrize("supervised", ["stop", "restart"])
def test_waiting_sends_are_sent_when_the_sender_ends(system: ActorSystem, supervised: str) -> None:
    scene = Scene(system, "block")
    told = threading.Event()

    async def send(actor: Doer) -> None:
        scene.receiver.tell_many([3, 4, 5])
        told.set()
        await asyncio.sleep(0)

    sent = scene.sender.ask(send)
    assert told.wait(60)
    scene.sender.stop()
    with pytest.raises(Exception, match="stopped"):
        sent.result(60)
    scene.outside.set_result(None)
    system.drain()
    assert scene.seen == list(range(6))


def test_a_stop_ends_a_handler_that_has_returned_and_waits_for_room(system: ActorSystem) -> None:
    scene = Scene(system, "block")
    send, has_sent = sending(scene.receiver, range(3, 6)), threading.Event()

    async def send_and_say_so(actor: Doer) -> str:
        outcome: str = await send(actor)
        has_sent.set()
        return outcome

    sent = scene.sender.ask(send_and_say_so)
    assert has_sent.wait(60)
    scene.prove_that_the_loop_runs()  # so the handler has returned
    scene.sender.stop()
    assert sent.result(60) == "sent"
    scene.outside.set_result(None)
    system.drain()
    assert scene.seen == list(range(6))
    assert not scene.sender.is_alive


def test_a_send_that_waits_for_a_stopping_actor_is_dead(system: ActorSystem) -> None:
    scene = Scene(system, "block")
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    sent = scene.sender.ask(sending(scene.receiver, range(3, 6)))
    scene.prove_that_the_loop_runs()
    scene.receiver.stop()
    assert sent.result(60) == "sent"
    system.drain()
    assert sorted(letter.message for letter in letters) == list(range(6))
    assert {letter.reason for letter in letters} == {"stopped"}


@pytest.mark.parametrize(
    ("overflow", "seen", "raises"),
    [
        ("drop_newest", [0, 1, 2], False),
        ("drop_oldest", [0, 3, 4], False),
        ("fail", [0, 1, 2], True),
    ],
)
def test_policies_that_do_not_wait_decide_at_once(
    system: ActorSystem, overflow: str, seen: list[int], raises: bool
) -> None:
    scene = Scene(system, overflow)
    sent = scene.sender.ask(sending(scene.receiver, range(3, 5)))
    if raises:
        with pytest.raises(MailboxFull):
            sent.result(60)
    else:
        assert sent.result(60) == "sent"
    scene.outside.set_result(None)
    system.drain()
    assert scene.seen == seen


def test_an_actor_on_the_loop_cannot_wait_for_its_own_mailbox(system: ActorSystem) -> None:
    async def send(actor: Doer) -> None:
        for _ in range(3):
            actor.ref.tell(send)

    sender = system.spawn(Doer, event_loop=True, mailbox=BoundedMailbox(2, timeout=PATIENCE))
    with pytest.raises(MailboxFull, match="no room can come"):
        sender.ask(send).result(60)


def test_a_callback_on_the_loop_sends_past_the_bound(system: ActorSystem) -> None:
    scene = Scene(system, "block")

    async def send(actor: Doer) -> None:
        asyncio.get_running_loop().call_soon(scene.receiver.tell, 3)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    scene.sender.ask(send).result(60)
    scene.outside.set_result(None)
    system.drain()
    assert scene.seen == [0, 1, 2, 3]


@pytest.fixture
def other() -> Iterator[ActorSystem]:
    with ActorSystem("other", workers=1) as system:
        yield system


def test_room_in_another_systems_mailbox_too(system: ActorSystem, other: ActorSystem) -> None:
    scene = Scene(other, "block")
    sender = system.spawn(Doer, event_loop=True)
    bystander = system.spawn(Doer, event_loop=True)
    sent = sender.ask(sending(scene.receiver, range(3, 50)))
    assert bystander.ask(sending(scene.receiver, range(0))).result(60) == "sent"
    assert not sent.done()
    scene.outside.set_result(None)
    assert sent.result(60) == "sent"
    other.drain()
    assert scene.seen == list(range(50))


def test_a_send_that_waits_holds_back_its_actors_later_ones(system: ActorSystem) -> None:
    entered, let_go = threading.Event(), threading.Event()
    got: list[int] = []

    class Slow(Actor[int]):
        def receive(self, message: int) -> None:
            entered.set()
            let_go.wait(PATIENCE)
            got.append(message)

    slow = system.spawn(Slow, mailbox=BoundedMailbox(1))
    slow.tell(-1)
    assert entered.wait(PATIENCE)

    class Sends(Actor[int]):
        async def receive(self, message: int) -> None:
            slow.tell(2 * message)
            await asyncio.sleep(0)
            slow.tell(2 * message + 1)

    ref = system.spawn(Sends, event_loop=True, concurrency=4)
    answers = [ref.ask(number) for number in range(8)]
    let_go.set()
    for answer in answers:
        answer.result(PATIENCE)
    system.drain(PATIENCE)
    assert sorted(got) == list(range(-1, 16))
    assert [number for number in got if number % 2 == 0] == list(range(0, 16, 2))


def test_a_message_does_not_overtake_a_step_that_has_waited_for_room(system: ActorSystem) -> None:
    entered, let_go = threading.Event(), Future[None]()
    blocked, unblock = threading.Event(), threading.Event()
    loops: list[Any] = []
    got: list[str] = []

    class Slow(Actor[str]):
        async def receive(self, message: str) -> None:
            entered.set()
            await let_go
            got.append(message)

    slow = system.spawn(Slow, mailbox=BoundedMailbox(1), name="slow")
    slow.tell("first")
    assert entered.wait(PATIENCE)

    class Sends(Actor[str]):
        async def receive(self, message: str) -> None:
            loops.append(asyncio.get_running_loop())
            slow.tell(message + "1")
            slow.tell(message + "2")
            await asyncio.sleep(0)
            slow.tell(message + "3")

    ref = system.spawn(Sends, event_loop=True, concurrency=2)
    answers = [ref.ask("a")]
    eventually(lambda: ref.info().waits_for == "room at /slow", "it waits for room")
    (loop,) = loops
    for _ in range(3):  # until its next step waits, too
        asyncio.run_coroutine_threadsafe(asyncio.sleep(0), loop).result(PATIENCE)

    def hold() -> None:
        blocked.set()
        unblock.wait(PATIENCE)

    loop.call_soon_threadsafe(hold)
    assert blocked.wait(PATIENCE)
    answers.append(ref.ask("b"))
    eventually(lambda: "_make_calls" in repr(loop._ready), "the loop is to begin it")
    let_go.set_result(None)
    eventually(lambda: "Outgoing.go_on" in repr(loop._ready), "the loop is to hear of the room")
    unblock.set()
    for answer in answers:
        answer.result(PATIENCE)
    system.drain(PATIENCE)
    assert got == ["first", "a1", "a2", "a3", "b1", "b2", "b3"]
