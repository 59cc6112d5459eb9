"""`atell()`: a message waits for room outside a full mailbox, and its sender is not blocked."""

import asyncio
import gc
from collections.abc import Callable
from threading import Event
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, BoundedMailbox, Future, MailboxFull
from callboard.native import NativeActor
from callboard.testing import ManualSystem

PATIENCE = 600.0  # seconds, of mailboxes whose senders are to go on long before
DEADLINE = 30.0


class Gated(Actor[Any]):
    """Begins with its first message when a future from outside is done."""

    def __init__(self, gate: "Future[None]", seen: list[Any]) -> None:
        self.gate, self.seen = gate, seen

    async def receive(self, message: Any) -> Any:
        await self.gate
        self.seen.append(message)
        return message


class Scene:
    """A receiver with room for two, in the middle of its first message, and full."""

    def __init__(self, system: ActorSystem, overflow: str = "block", timeout: float = PATIENCE):
        self.gate: Future[None] = Future()
        self.seen: list[Any] = []
        mailbox = BoundedMailbox(2, overflow, timeout=timeout)
        self.ref: ActorRef[Any] = system.spawn(Gated, self.gate, self.seen, mailbox=mailbox)
        self.ref.tell(0)
        while self.ref.statistics().queue != 0:  # it is in the middle of that
            if isinstance(system, ManualSystem):
                system.run_until_idle()
        self.ref.tell_many([1, 2])


def awaiting(function: Callable[[], Any]) -> Any:
    """Run a coroutine function in an event loop, for the deadline at most."""

    async def main() -> Any:
        async with asyncio.timeout(DEADLINE):
            return await function()

    return asyncio.run(main())


async def test_asyncio_waits_for_what_was_sent_at_once(system: ActorSystem) -> None:
    seen: list[Any] = []
    gate: Future[None] = Future()
    gate.set_result(None)
    ref = system.spawn(Gated, gate, seen)
    await asyncio.wait_for(ref.atell(1), DEADLINE)
    await asyncio.gather(ref.atell(2), ref.atell_many([3, 4]))
    await ref.ask(5)
    assert seen == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("mailbox", [None, BoundedMailbox(6)])
async def test_with_room_it_is_sent_at_once(system: ActorSystem, mailbox: Any) -> None:
    gate: Future[None] = Future()
    seen: list[Any] = []
    ref = system.spawn(Gated, gate, seen, mailbox=mailbox)
    for number in range(3):
        await ref.atell(number)
        assert ref.atell(number).done()
    gate.set_result(None)
    await system.adrain(DEADLINE)
    assert seen == [0, 0, 1, 1, 2, 2]


async def test_with_room_the_await_takes_no_step_of_the_loop(system: ActorSystem) -> None:
    ref = system.spawn(Gated, Future(), [])
    steps: list[str] = []
    asyncio.get_running_loop().call_soon(steps.append, "a step")
    await ref.atell(1)
    assert steps == []
    await asyncio.sleep(0)
    assert steps == ["a step"]
    ref.stop()


@pytest.mark.parametrize("overflow", ["block", "help", "throttle"])
async def test_without_room_it_waits_and_the_loop_runs(system: ActorSystem, overflow: str) -> None:
    scene = Scene(system, overflow)
    waiting = [asyncio.ensure_future(scene.ref.atell(number)) for number in (3, 4, 5)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    scene.gate.set_result(None)
    await asyncio.gather(*waiting)
    await system.adrain(DEADLINE)
    assert scene.seen == [0, 1, 2, 3, 4, 5]


async def test_many_wait_together_in_their_order(system: ActorSystem) -> None:
    scene = Scene(system)
    told = scene.ref.atell_many(range(3, 50))
    assert not told.done()
    scene.gate.set_result(None)
    await told
    await scene.ref.atell_many([])
    await system.adrain(DEADLINE)
    assert scene.seen == [*range(50)]


def test_a_plain_thread_may_wait_for_its_future(system: ActorSystem) -> None:
    scene = Scene(system)
    told = scene.ref.atell(3)
    scene.gate.set_result(None)
    assert told.result(DEADLINE) is None
    system.drain(DEADLINE)
    assert scene.seen == [0, 1, 2, 3]


async def test_a_cancelled_await_takes_the_message_back(system: ActorSystem) -> None:
    scene = Scene(system)
    first = asyncio.ensure_future(scene.ref.atell(3))
    second = asyncio.ensure_future(scene.ref.atell(4))
    many = asyncio.ensure_future(scene.ref.atell_many([5, 6, 7]))
    await asyncio.sleep(0)
    first.cancel()
    many.cancel()
    await asyncio.wait([first, many])
    assert first.cancelled()
    assert many.cancelled()
    scene.gate.set_result(None)
    await second
    await system.adrain(DEADLINE)
    assert scene.seen == [0, 1, 2, 4]


async def test_a_message_sent_just_before_the_cancellation_stays_sent(system: ActorSystem) -> None:
    scene = Scene(system)
    told = scene.ref.atell(3)

    async def waits() -> None:
        await told

    task = asyncio.ensure_future(waits())
    await asyncio.sleep(0)
    scene.gate.set_result(None)
    while not told.done():  # the loop stands still
        pass
    task.cancel()
    await asyncio.wait([task])
    assert task.cancelled()
    await system.adrain(DEADLINE)
    assert scene.seen == [0, 1, 2, 3]


@pytest.mark.parametrize("steps", range(40))
async def test_a_cancel_at_any_step_sends_a_message_once_or_never(steps: int) -> None:
    with ManualSystem(seed=steps) as system:
        scene = Scene(system)
        told: list[int] = []

        async def tells() -> None:
            for number in range(3, 12):
                await scene.ref.atell(number)
                told.append(number)

        task = asyncio.ensure_future(tells())
        scene.gate.set_result(None)
        for _ in range(steps):
            system.step()
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])
        system.run_until_idle()
        seen = scene.seen[3:]
        assert seen[: len(told)] == told
        assert seen in (told, [*range(3, 4 + len(told))])


async def test_a_mailbox_that_stays_full_refuses_as_it_refuses_tell(system: ActorSystem) -> None:
    scene = Scene(system, timeout=0.0)
    with pytest.raises(MailboxFull, match="stayed full"):
        await scene.ref.atell(3)
    with pytest.raises(MailboxFull, match="stayed full"):
        await scene.ref.atell_many([4, 5])
    scene.gate.set_result(None)
    await system.adrain(DEADLINE)
    assert scene.seen == [0, 1, 2]


def test_throttled_messages_are_sent_when_the_time_is_up(system: ActorSystem) -> None:
    scene = Scene(system, "throttle", timeout=0.0)
    awaiting(lambda: scene.ref.atell_many([3, 4]))
    assert scene.ref.statistics().queue == 4
    scene.gate.set_result(None)
    system.drain(DEADLINE)
    assert scene.seen == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("overflow", ["fail", "drop_newest", "drop_oldest"])
def test_other_policies_do_as_with_tell(system: ActorSystem, overflow: str) -> None:
    scene = Scene(system, overflow)
    if overflow == "fail":
        with pytest.raises(MailboxFull):
            awaiting(lambda: scene.ref.atell(3))
    else:
        awaiting(lambda: scene.ref.atell(3))
    scene.gate.set_result(None)
    system.drain(DEADLINE)
    assert (
        scene.seen
        == {"fail": [0, 1, 2], "drop_newest": [0, 1, 2], "drop_oldest": [0, 2, 3]}[overflow]
    )


def test_a_message_waiting_for_a_stopping_actor_is_dead(system: ActorSystem) -> None:
    scene = Scene(system)
    told = scene.ref.atell_many([3, 4])
    scene.ref.stop()
    assert told.result(DEADLINE) is None
    system.drain(DEADLINE)
    assert system.dead_letters.count == 5


def test_a_coroutine_of_an_actor_waits_and_its_worker_runs_others() -> None:
    class Sender(Actor[ActorRef[Any]]):
        async def receive(self, ref: ActorRef[Any]) -> str:
            for number in range(3, 10):
                await ref.atell(number)
            return "sent"

    with ActorSystem(workers=1) as system:
        scene = Scene(system)
        sender = system.spawn(Sender)
        answer = sender.ask(scene.ref)
        while not (sender.info().waits_for or "").startswith("room at"):
            pass
        scene.gate.set_result(None)
        assert answer.result(DEADLINE) == "sent"
        system.drain(DEADLINE)
        assert scene.seen == [*range(10)]


def test_an_actor_that_ends_takes_back_what_it_waits_with(manual: ManualSystem) -> None:
    class Sender(Actor[ActorRef[Any]]):
        async def receive(self, ref: ActorRef[Any]) -> None:
            await ref.atell(3)

    scene = Scene(manual)
    sender = manual.spawn(Sender)
    sender.tell(scene.ref)
    manual.run_until_idle()
    sender.stop()
    manual.run_until_idle()
    scene.gate.set_result(None)
    manual.run_until_idle()
    assert scene.seen == [0, 1, 2]


def test_an_actor_on_the_event_loop_waits_behind_what_it_told(system: ActorSystem) -> None:
    class Sender(Actor[ActorRef[Any]]):
        async def receive(self, ref: ActorRef[Any]) -> list[bool]:
            ref.tell(3)  # which waits for room
            waiting.set()
            told = []
            for number in range(4, 8):
                await ref.atell(number)
                told.append(gate.done())
            return told

    scene = Scene(system)
    gate = scene.gate
    waiting = Event()
    answer = system.spawn(Sender, event_loop=True).ask(scene.ref)
    assert waiting.wait(DEADLINE)
    gate.set_result(None)
    assert answer.result(DEADLINE) == [True] * 4
    system.drain(DEADLINE)
    assert scene.seen == [*range(8)]


def test_an_actor_without_room_for_its_own_message_is_refused(system: ActorSystem) -> None:
    class Selfish(Actor[int]):
        async def receive(self, number: int) -> str:
            if number:
                return "one more"
            self.ref.tell(1)
            try:
                await self.ref.atell(2)
            except MailboxFull as error:
                return str(error)
            return "sent"

    ref = system.spawn(Selfish, mailbox=BoundedMailbox(1))
    assert "in the middle of the message" in ref.ask(0).result(DEADLINE)


def test_the_receiver_sees_the_sender_and_its_variables(system: ActorSystem) -> None:
    class Sees(Actor[Any]):
        async def receive(self, message: Any) -> None:
            senders.append(self.sender)

    class Sender(Actor[ActorRef[Any]]):
        async def receive(self, ref: ActorRef[Any]) -> None:
            await ref.atell(1)
            await ref.atell_many([2, 3, 4])

    senders: list[Any] = []
    sees = system.spawn(Sees, mailbox=BoundedMailbox(1), context="sender")
    sender = system.spawn(Sender)
    sender.ask(sees).result(DEADLINE)
    system.drain(DEADLINE)
    assert senders == [sender] * 4


class Native(NativeActor):
    pass


async def test_native_actors_take_native_values(system: ActorSystem) -> None:
    native: Any = Native
    ref = system.spawn(native, mailbox=BoundedMailbox(2))
    for number in range(10):
        await ref.atell(number)
    with pytest.raises(TypeError):
        await ref.atell("text")
    await system.adrain(DEADLINE)


def test_a_dropped_manual_system_frees_waiting_messages() -> None:
    system = ManualSystem()
    scene = Scene(system)
    told = scene.ref.atell(3)
    kept = scene.ref
    del scene, system
    gc.collect()
    assert not told.done()
    assert kept.is_alive
