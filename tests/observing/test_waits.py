"""Why actors wait: each reason is provoked and reported."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorSystem,
    BoundedMailbox,
    ConfigError,
    DrainTimeout,
    Future,
    Supervision,
    as_concurrent,
    first,
)
from callboard.channels import channel
from callboard.core.threads.interpreter import has_gil
from callboard.observing import WaitRecord
from callboard.policies import Fixed
from tests.observing import actors
from tests.observing.actors import Box, Holder, Passage
from tests.waiting import until


def becomes(system: ActorSystem, name: str, reason: str, **options: Any) -> WaitRecord:
    """Wait until an actor waits for that reason, and return the entry."""
    until(lambda: system.why_waiting(**options).of(name).reason == reason)
    return system.why_waiting(**options).of(name)


def test_an_actor_without_a_message_has_no_input() -> None:
    with ActorSystem(workers=1) as system:
        system.spawn(Box, name="box")
        system.drain(60)
        waits = system.why_waiting()
    assert waits.of("/box") == WaitRecord("actor", "/box", "no input", "waits for a message")
    assert waits.reasons == {"no input": 1}
    assert str(waits) == "no input 1"


def test_an_actor_in_a_message_runs_and_is_stuck_after_a_while() -> None:
    passage = Passage()
    with ActorSystem("shop", workers=1) as system:
        system.spawn(Holder, name="holder").tell(passage)
        assert passage.entered.wait(30)
        runs = system.why_waiting(stuck_after=1000).of("/holder")
        stuck = system.why_waiting(stuck_after=0).of("/holder")
        text = str(system.why_waiting(stuck_after=0))
        passage.leave.set()
    assert (runs.reason, runs.words, runs.stack) == ("running", "runs on worker shop-0", "")
    assert stuck.reason == "stuck"
    assert stuck.words.startswith("has been in one message for ")
    assert stuck.words.endswith(" s, on worker shop-0")
    assert "in pass_through\n" in stuck.stack
    assert stuck.stack.startswith(f'  File "{actors.__file__}"')
    assert stuck.seconds is not None
    assert 0 <= stuck.seconds < 60
    assert text.startswith("stuck 1\n/holder has been in one message for ")
    assert "in pass_through\n" in text


def test_a_ready_actor_behind_another_is_queued() -> None:
    passage = Passage()
    with ActorSystem("shop", workers=1) as system:
        box = system.spawn(Box, name="box")
        system.spawn(Holder, name="holder").tell(passage)
        assert passage.entered.wait(30)
        box.tell(0)
        wait = system.why_waiting().of("/box")
        passage.leave.set()
    assert wait == WaitRecord(
        "actor", "/box", "queued", "is ready, and waits for its turn on worker shop-0"
    )


@pytest.mark.skipif(not has_gil(), reason="a token says which worker has the interpreter's lock")
def test_a_ready_actor_that_needs_the_interpreter_names_its_owner() -> None:
    passage = Passage()
    with ActorSystem("shop", workers=2, threading="assigned") as system:
        box = system.spawn(Box, name="box", placement=Fixed(1))
        system.drain(60)
        system.spawn(Holder, name="holder", placement=Fixed(0)).tell(passage)
        assert passage.entered.wait(30)
        box.tell(0)
        wait = system.why_waiting().of("/box")
        with pytest.raises(DrainTimeout) as late:
            system.drain(0.0)
        passage.leave.set()
    assert wait == WaitRecord(
        "actor", "/box", "token", "waits for the interpreter, which worker shop-0 has"
    )
    assert "\n/box waits for the interpreter, which worker shop-0 has" in str(late.value)


class Waiter(Actor[Callable[[Any], Any]]):
    """Awaits what it is told to make."""

    async def receive(self, message: Callable[[Any], Any]) -> None:
        await message(self)


class Answers(Actor[Future[None]]):
    """Answers with a future that somebody else completes."""

    def receive(self, message: Future[None]) -> Future[None]:
        return message


def test_the_awaited_future_is_the_reason() -> None:
    full, empty = channel(1), channel(1)
    full[0].clone().put(0)
    later = Future[None]()
    with ActorSystem(workers=1) as system:
        answers = system.spawn(Answers, name="answers")
        cases: dict[str, tuple[str, str, Callable[[Any], Any]]] = {
            "value": (
                "channel",
                f"a value of channel {empty[1]._number}",
                lambda _: empty[1].receive(),
            ),
            "space": ("channel", f"room in channel {full[0]._number}", lambda _: full[0].send(1)),
            "answer": ("answer", "an answer of /answers", lambda _: answers.ask(later)),
            "own": ("answer", "an answer", lambda _: later),
            "timer": ("timer", "a timer", lambda me: me.sleep(3600)),
            "actor": ("actor", "an actor at /late", lambda me: me.system.afind("/late")),
        }
        for name, (reason, words, wait) in cases.items():
            system.spawn(Waiter, name=name).tell(wait)
            assert becomes(system, f"/{name}", reason).words == f"waits for {words}"
        system.find("/timer").stop()
        system.find("/actor").stop()
        full[1].get(30.0)
        later.set_result(None)
        system.find("/value").stop()


def test_an_actor_on_the_event_loop_waits_for_that() -> None:
    with ActorSystem(workers=1) as system:
        waiter = system.spawn(Waiter, name="waiter", event_loop=True)
        waiter.tell(lambda _: asyncio.Event().wait())
        assert becomes(system, "/waiter", "event loop").words == "waits for its event loop"
        waiter.stop()


class Blocks(Actor[Passage]):
    """Blocks the event loop, and not only itself."""

    async def receive(self, message: Passage) -> None:
        message.pass_through()


@pytest.mark.parametrize("concurrency", [1, 2])
def test_an_actor_that_blocks_the_event_loop_is_stuck_there(concurrency: int) -> None:
    passage, later = Passage(), Future[None]()
    with ActorSystem(workers=1) as system:
        fine = system.spawn(Waiter, name="fine", event_loop=True)
        fine.tell(lambda _: wrapped(later))
        becomes(system, "/fine", "event loop")
        blocks = system.spawn(Blocks, name="blocks", event_loop=True, concurrency=concurrency)
        blocks.tell(passage)
        assert passage.entered.wait(30)
        runs = system.why_waiting(stuck_after=1000).of("/blocks")
        stuck = system.why_waiting(stuck_after=0).of("/blocks")
        reasons = system.why_waiting(stuck_after=0).reasons
        waits_for = blocks.info().waits_for
        with pytest.raises(DrainTimeout) as late:
            system.drain(0.0)
        passage.leave.set()
        later.set_result(None)
        system.drain(60)
        after = system.why_waiting(stuck_after=0).reasons
    assert (runs.reason, runs.words) == ("running", "runs on the event loop")
    assert stuck.reason == "stuck"
    assert stuck.words.startswith("has not awaited for ")
    assert stuck.words.endswith(" s, on the event loop")
    assert stuck.seconds is not None
    assert 0 <= stuck.seconds < 60
    assert "in pass_through\n" in stuck.stack
    assert stuck.stack.startswith(f'  File "{__file__}"')
    assert reasons == {"stuck": 1, "event loop": 1}
    assert waits_for is None
    assert "the event loop runs /blocks, for about " in str(late.value)
    assert "in pass_through\n" in str(late.value)
    assert "/fine waits in the middle of a message for its event loop" in str(late.value)
    assert after == {"no input": 2}


def test_a_task_that_an_actor_left_behind_is_named_if_it_blocks_the_event_loop() -> None:
    class Leaves(Actor[Passage]):
        async def receive(self, message: Passage) -> None:
            async def block() -> None:
                message.pass_through()

            self.task = asyncio.create_task(block())

    passage = Passage()
    with ActorSystem(workers=1) as system:
        system.spawn(Leaves, name="leaves", event_loop=True).tell(passage)
        assert passage.entered.wait(30)
        wait = system.why_waiting(stuck_after=0).of("/leaves")
        passage.leave.set()
    assert wait.reason == "stuck"
    assert "in pass_through\n" in wait.stack


@pytest.mark.parametrize("event_loop", [False, True])
def test_the_end_of_an_actor_waits_for_its_hook(event_loop: bool) -> None:
    class Ends(Actor[Any]):
        def __init__(self, wait: Callable[[Any], Any]) -> None:
            self.wait = wait

        def receive(self, message: Any) -> None:
            pass

        async def on_stop(self) -> None:
            begun.release()
            await self.wait(self)

    later = Future[None]()
    begun = threading.Semaphore(0)  # before its hook an actor waits for its turn there
    with ActorSystem(workers=1) as system:
        answers = system.spawn(Answers, name="answers")
        cases: list[tuple[str, str, Callable[[Any], Any]]] = [
            ("answer", "an answer of /answers", lambda _: answers.ask(later)),
            ("timer", "a timer", lambda me: first(me.sleep(3600), later)),
        ]
        if event_loop:
            there = ("event loop", "its event loop", lambda _: wrapped(later))
            cases.append(there)
        for reason, words, wait in cases:
            ends = system.spawn(Ends, wait, event_loop=event_loop, name=reason.replace(" ", "-"))
            ends.ready.result(30)
            ends.stop()
            assert begun.acquire(timeout=30)
            name = f"/{reason.replace(' ', '-')}"
            assert becomes(system, name, reason).words == f"waits for {words}"
            assert ends.info().waits_for == words
            with pytest.raises(DrainTimeout, match=f"{name} waits .* for {words}"):
                system.drain(0.0)
        later.set_result(None)


async def wrapped(future: Future[None]) -> None:
    await asyncio.wrap_future(as_concurrent(future))


def test_a_sender_without_room_says_where() -> None:
    class Fills(Actor[ActorRef[Any]]):
        def receive(self, message: ActorRef[Any]) -> None:
            for _ in range(3):
                message.tell(0)

    passage = Passage()
    with ActorSystem(workers=1) as system:
        full = system.spawn(Holder, name="full", mailbox=BoundedMailbox(1), dedicated=True)
        full.tell(passage)
        assert passage.entered.wait(30)
        full.tell(passage)
        system.spawn(Fills, name="fills").tell(full)
        assert becomes(system, "/fills", "room").words == "waits for room at /full"
        full.stop()
        passage.leave.set()


def test_a_restart_that_backs_off_and_the_end_of_children_are_reasons() -> None:
    class Parent(Actor[Any]):
        def receive(self, message: Passage) -> None:
            self.spawn(Holder, name="child", dedicated=True).tell(message)

    passage = Passage()
    slow = Supervision("restart", backoff=3600, max_backoff=3600)
    with ActorSystem(workers=1) as system:
        box = system.spawn(Box, name="box", supervision=slow)
        box.tell("fail")
        assert becomes(system, "/box", "restart").words == "waits for a restart"
        box.stop()
        parent = system.spawn(Parent, name="parent")
        parent.tell(passage)
        assert passage.entered.wait(30)
        parent.stop()
        assert becomes(system, "/parent", "children").words == "waits for the end of its children"
        passage.leave.set()


def test_the_text_begins_with_the_reasons_of_a_standstill() -> None:
    passage = Passage()
    with ActorSystem(workers=1) as system:
        system.spawn(Box, name="idle")
        waiter = system.spawn(Waiter, name="waiter")
        waiter.tell(lambda me: me.sleep(3600))
        becomes(system, "/waiter", "timer")
        system.spawn(Holder, name="holder").tell(passage)
        assert passage.entered.wait(30)
        waits = system.why_waiting(stuck_after=0)
        passage.leave.set()
        waiter.stop()
    assert [wait.name for wait in waits] == ["/idle", "/waiter", "/holder"]
    assert waits.reasons == {"stuck": 1, "timer": 1, "no input": 1}
    lines = str(waits).splitlines()
    assert lines[0] == "stuck 1, timer 1, no input 1"
    assert lines[1].startswith("/holder has been in one message for ")
    assert lines[-1] == "/waiter waits for a timer"
    assert repr(waits) == "<WaitReport: stuck 1, timer 1, no input 1>"
    with pytest.raises(KeyError, match="/nobody"):
        waits.of("/nobody")


def test_a_text_of_many_stays_short() -> None:
    passage = Passage()
    with ActorSystem(workers=1) as system:
        boxes = [system.spawn(Box) for _ in range(500)]
        system.drain(60)
        system.spawn(Holder).tell(passage)
        assert passage.entered.wait(30)
        for box in boxes:
            box.tell(0)
        lines = str(system.why_waiting(stuck_after=1000)).splitlines()
        passage.leave.set()
    assert lines[0] == "queued 500, running 1"
    assert len(lines) == 102
    assert lines[-1] == "... and 401 more"


def test_waits_can_be_asked_for_while_everything_goes_on() -> None:
    with ActorSystem(workers=2) as system:
        stop = threading.Event()

        class Restless(Actor[Any]):
            def receive(self, message: Any) -> None:
                if not stop.is_set():
                    self.ref.tell(message)
                    self.spawn(Box).stop()

        for _ in range(4):
            system.spawn(Restless).tell(0)
        for _ in range(200):
            assert system.why_waiting().reasons
        stop.set()


def test_a_wrong_time_is_refused() -> None:
    with (
        ActorSystem(workers=1) as system,
        pytest.raises(ConfigError, match="stuck_after must be a number of seconds from 0"),
    ):
        system.why_waiting(stuck_after=-1)
