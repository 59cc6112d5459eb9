"""`spawn(..., concurrency=n)`: an actor that works on up to n messages at a time."""

import asyncio
from contextvars import ContextVar
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callboard import (
    Actor,
    ActorStopped,
    ActorSystem,
    DeadLetter,
    Future,
    PriorityMailbox,
    Supervision,
)
from callboard.testing import ManualSystem
from tests.actors.gates import Gates, gates, on_both_hosts, until
from tests.remote.conftest import eventually

DEADLINE = 30.0


@on_both_hosts
def test_at_most_concurrency_messages_are_running(system: ActorSystem, event_loop: bool) -> None:
    doors, notes = gates(5), list[str]()
    ref = system.spawn(Gates, doors, notes, concurrency=3, event_loop=event_loop)
    answers = [ref.ask(number) for number in range(5)]
    until(notes, 3)
    assert notes == ["begin 0", "begin 1", "begin 2"]
    doors[1].set_result("one")
    assert answers[1].result(DEADLINE) == "one"
    until(notes, 5)
    assert notes[3:] == ["end 1", "begin 3"]
    for door in doors:
        door.set_result("all")
    assert [answer.result(DEADLINE) for answer in answers] == ["all", "one", "all", "all", "all"]


@on_both_hosts
def test_the_class_may_say_it(system: ActorSystem, event_loop: bool) -> None:
    class Two(Gates):
        concurrency = 2

    doors, notes = gates(3), list[str]()
    ref = system.spawn(Two, doors, notes, event_loop=event_loop)
    ref.tell_many(range(3))
    until(notes, 2)
    doors[0].set_result(None)
    until(notes, 4)
    assert notes == ["begin 0", "begin 1", "end 0", "begin 2"]
    for door in doors:
        door.set_result(None)


@on_both_hosts
def test_a_drain_waits_for_all_of_them(system: ActorSystem, event_loop: bool) -> None:
    doors, notes = gates(4), list[str]()
    ref = system.spawn(Gates, doors, notes, concurrency=4, event_loop=event_loop)
    ref.tell_many(range(4))
    until(notes, 4)
    for door in reversed(doors):
        assert not system._runtime.team.is_idle()
        door.set_result(None)
    system.drain(DEADLINE)
    assert sorted(notes[4:]) == ["end 0", "end 1", "end 2", "end 3"]


@on_both_hosts
def test_a_stop_makes_running_messages_dead_letters(system: ActorSystem, event_loop: bool) -> None:
    doors, notes = gates(4), list[str]()
    ref = system.spawn(Gates, doors, notes, concurrency=3, event_loop=event_loop)
    ref.tell(0)
    asked = ref.ask(1)
    ref.tell(2)
    ref.tell(3)
    until(notes, 3)
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    ref.stop()
    ref.ended.result(DEADLINE)
    left = "CancelledError" if event_loop else "GeneratorExit"
    assert notes[3:] == [f"{left} at {number}" for number in range(3)] + ["stopped"]
    with pytest.raises(ActorStopped, match="in the middle of the ask"):
        asked.result(DEADLINE)
    system.drain(DEADLINE)
    assert sorted((letter.message, letter.reason) for letter in letters) == [
        (number, "stopped") for number in range(4)
    ]


@on_both_hosts
def test_a_failure_with_restart_ends_the_others(system: ActorSystem, event_loop: bool) -> None:
    doors, notes = gates(4), list[str]()
    ref = system.spawn(
        Gates, doors, notes, concurrency=3, event_loop=event_loop, supervision="restart"
    )
    asked = [ref.ask(number) for number in range(3)]
    until(notes, 3)
    waiting = ref.ask(3)
    doors[1].set_exception(ValueError("one"))
    for answer in asked:
        with pytest.raises(ValueError, match="one"):
            answer.result(DEADLINE)
    doors[3].set_result("three")
    assert waiting.result(DEADLINE) == "three"
    assert notes.count("stopped") == 1
    assert notes[3:5] == ["ValueError at 1", "failed at 1"]
    assert notes[-2:] == ["begin 3", "end 3"]


@on_both_hosts
def test_a_failure_with_resume_leaves_the_others(system: ActorSystem, event_loop: bool) -> None:
    doors, notes = gates(3), list[str]()
    ref = system.spawn(
        Gates, doors, notes, concurrency=3, event_loop=event_loop, supervision="resume"
    )
    asked = [ref.ask(number) for number in range(3)]
    until(notes, 3)
    doors[1].set_exception(ValueError("one"))
    with pytest.raises(ValueError, match="one"):
        asked[1].result(DEADLINE)
    doors[0].set_result("zero")
    doors[2].set_result("two")
    assert [asked[0].result(DEADLINE), asked[2].result(DEADLINE)] == ["zero", "two"]
    assert ref.is_alive


@on_both_hosts
def test_an_expected_error_ends_its_own_message_only(system: ActorSystem, event_loop: bool) -> None:
    doors, notes = gates(2), list[str]()
    ref = system.spawn(
        Gates,
        doors,
        notes,
        concurrency=2,
        event_loop=event_loop,
        supervision=Supervision(expected=(KeyError,)),
    )
    asked = [ref.ask(number) for number in range(2)]
    doors[0].set_exception(KeyError("zero"))
    with pytest.raises(KeyError):
        asked[0].result(DEADLINE)
    doors[1].set_result("one")
    assert asked[1].result(DEADLINE) == "one"
    assert "failed at 0" not in notes


@on_both_hosts
def test_each_message_has_its_own_sender(system: ActorSystem, event_loop: bool) -> None:
    door: Future[None] = Future()
    seen: list[tuple[str, Any]] = []

    class Tells(Actor[Any]):
        def receive(self, to: Any) -> None:
            to.tell(self.ref.name)

    class Asked(Actor[str]):
        async def receive(self, name: str) -> None:
            seen.append((name, self.sender))
            await door
            seen.append((name, self.sender))

    ref = system.spawn(Asked, concurrency=3, event_loop=event_loop)
    for name in "abc":
        system.spawn(Tells, name=name).tell(ref)
    eventually(lambda: len(seen) >= 3, "three have begun")
    door.set_result(None)
    system.drain(DEADLINE)
    assert len(seen) == 6
    assert all(sender is not None and sender.name == name for name, sender in seen)


variable: ContextVar[str] = ContextVar("variable", default="unset")


@on_both_hosts
@pytest.mark.parametrize("context", ["own", "sender"])
def test_each_message_has_its_own_context_variables(
    system: ActorSystem, event_loop: bool, context: Literal["own", "sender"]
) -> None:
    door: Future[None] = Future()
    seen: list[str] = []

    class Sets(Actor[str]):
        async def receive(self, name: str) -> str:
            first = variable.get()
            variable.set(f"{first} {name}")
            seen.append(name)
            await door
            return variable.get()

    def ask(name: str) -> Any:
        variable.set(f"of {name}")
        return ref.ask(name)

    ref = system.spawn(Sets, concurrency=3, event_loop=event_loop, context=context)
    asked = [ask(name) for name in "abc"]
    eventually(lambda: len(seen) >= 3, "three have begun")
    door.set_result(None)
    first = {name: f"of {name}" if context == "sender" else "unset" for name in "abc"}
    expected = [f"{first[name]} {name}" for name in "abc"]
    assert [answer.result(DEADLINE) for answer in asked] == expected


@on_both_hosts
def test_a_message_that_is_put_aside_comes_again(system: ActorSystem, event_loop: bool) -> None:
    opened: Future[None] = Future()
    door: Future[None] = Future()
    notes: list[str] = []

    class Stashes(Actor[str]):
        is_open = False

        async def receive(self, message: str) -> str:
            if message == "open":
                self.is_open = True
                self.unstash_all()
                notes.append("open")
                await door
            elif not self.is_open:
                self.stash()
                notes.append("stashed")
                await opened
            return message

    ref = system.spawn(Stashes, concurrency=2, event_loop=event_loop)
    asked = ref.ask("early")
    until(notes, 1)
    opened.set_result(None)
    assert not asked.done()
    opening = ref.ask("open")
    assert asked.result(DEADLINE) == "early"  # though the one that opened is in the middle
    assert not opening.done()
    door.set_result(None)
    assert opening.result(DEADLINE) == "open"


@on_both_hosts
def test_a_fence_passes_after_the_messages_before_it(system: ActorSystem, event_loop: bool) -> None:
    doors, notes = gates(3), list[str]()
    ref = system.spawn(Gates, doors, notes, concurrency=3, event_loop=event_loop)
    ref.tell_many([0, 1])
    fence = ref._fence()
    ref.tell(2)
    until(notes, 3)  # a message behind the fence begins
    doors[0].set_result(None)
    until(notes, 4)
    assert not fence.done()
    doors[1].set_result(None)
    fence.result(DEADLINE)
    doors[2].set_result(None)


@on_both_hosts
def test_stop_after_queue_waits_for_running_messages(system: ActorSystem, event_loop: bool) -> None:
    doors, notes = gates(2), list[str]()
    ref = system.spawn(Gates, doors, notes, concurrency=2, event_loop=event_loop)
    ref.tell_many([0, 1])
    until(notes, 2)
    ref.stop(after_queue=True)
    for door in doors:
        door.set_result(None)
    ref.ended.result(DEADLINE)
    assert sorted(notes[2:4]) == ["end 0", "end 1"]


@on_both_hosts
def test_nothing_begins_after_a_stop_after_the_queue(system: ActorSystem, event_loop: bool) -> None:
    class Echo(Actor[int]):
        def receive(self, message: int) -> int:
            return message

    doors, notes = gates(4), list[str]()
    ref = system.spawn(Gates, doors, notes, concurrency=3, event_loop=event_loop)
    ref.tell_many([0, 1])
    until(notes, 2)
    ref.stop(after_queue=True)
    late = [ref.ask(2), ref.ask(3)]
    echo = system.spawn(Echo)
    echo.ask(0).result(DEADLINE)  # by now a worker has looked at those
    doors[0].set_result(None)
    until(notes, 3)
    echo.ask(0).result(DEADLINE)  # and again, after one of two has ended
    for door in doors[1:]:
        door.set_result(None)
    assert ref.ended.result(DEADLINE).reason == "stopped"
    assert notes == ["begin 0", "begin 1", "end 0", "end 1", "stopped"]
    for answer in late:
        with pytest.raises(ActorStopped):
            answer.result(DEADLINE)


@on_both_hosts
def test_an_ask_to_oneself_while_stopping_fails(system: ActorSystem, event_loop: bool) -> None:
    doors, notes = gates(1), list[str]()

    class Asks(Gates):
        async def receive(self, number: int) -> Any:
            if number == 0:
                await super().receive(number)
                with pytest.raises(ActorStopped):
                    await self.ref.ask(1)
                notes.append("refused")
            return number

    ref = system.spawn(Asks, doors, notes, concurrency=2, event_loop=event_loop)
    answer = ref.ask(0)
    until(notes, 1)
    ref.stop(after_queue=True)
    doors[0].set_result(None)
    assert answer.result(DEADLINE) == 0
    assert ref.ended.result(DEADLINE).reason == "stopped"
    assert notes == ["begin 0", "end 0", "refused", "stopped"]


def test_a_priority_mailbox_says_which_message_begins_next(system: ActorSystem) -> None:
    doors, notes = gates(5), list[str]()
    ref = system.spawn(
        Gates, doors, notes, concurrency=2, mailbox=PriorityMailbox(key=lambda m: -m)
    )
    ref.tell(0)
    until(notes, 1)
    ref.tell(1)
    until(notes, 2)
    ref.tell_many([2, 3, 4])
    doors[0].set_result(None)
    until(notes, 4)
    assert notes[2:] == ["end 0", "begin 4"]
    for door in doors:
        door.set_result(None)


@on_both_hosts
def test_one_thread_at_a_time_runs_its_code(system: ActorSystem, event_loop: bool) -> None:
    class Counts(Actor[int]):
        inside = 0
        wrong = 0

        def once(self) -> None:
            self.inside += 1
            for _ in range(20):
                self.wrong += self.inside != 1
            self.inside -= 1

        async def receive(self, message: int) -> Any:
            for _ in range(5):
                self.once()
                await self.sleep(0.0)
            if message % 10 == 3:
                raise ValueError
            return self.wrong

        def on_failure(self, error: BaseException, message: Any) -> None:
            self.once()

    ref = system.spawn(Counts, concurrency=8, event_loop=event_loop, supervision="resume")
    ref.tell_many(range(300))
    assert ref.ask(0).result(DEADLINE) == 0
    system.drain(DEADLINE)
    assert ref.ask(0).result(DEADLINE) == 0


def test_tasks_of_asyncio_wait_for_the_loop_beside_each_other(system: ActorSystem) -> None:
    class Meets(Actor[int]):
        def __init__(self) -> None:
            self.barrier = asyncio.Barrier(3)

        async def receive(self, message: int) -> int:
            async with asyncio.timeout(DEADLINE):
                await self.barrier.wait()
            return message

    ref = system.spawn(Meets, event_loop=True, concurrency=3)
    asked = [ref.ask(number) for number in range(6)]
    assert [answer.result(DEADLINE) for answer in asked] == list(range(6))


def test_its_waits_are_seen(system: ActorSystem) -> None:
    doors, notes = gates(1), list[str]()
    ref = system.spawn(Gates, doors, notes, concurrency=2)
    ref.tell(0)
    until(notes, 1)
    eventually(lambda: ref.info().waits_for == "an answer", "it waits")
    assert ref.info().is_suspended
    doors[0].set_result(None)


@on_both_hosts
@given(
    seed=st.integers(0, 2**32),
    sleeps=st.lists(st.integers(0, 3), min_size=1, max_size=12),
    concurrency=st.integers(1, 5),
)
def test_messages_begin_in_their_order_and_one_seed_is_one_course(
    event_loop: bool, seed: int, sleeps: list[int], concurrency: int
) -> None:
    def course() -> list[tuple[str, int]]:
        notes: list[tuple[str, int]] = []
        inside = 0

        class Sleeps(Actor[int]):
            async def receive(self, number: int) -> int:
                nonlocal inside
                inside += 1
                assert inside <= concurrency
                notes.append(("begin", number))
                if sleeps[number]:
                    await self.sleep(float(sleeps[number]))
                notes.append(("end", number))
                inside -= 1
                return number

        with ManualSystem(seed) as system:
            ref = system.spawn(Sleeps, concurrency=concurrency, event_loop=event_loop)
            answers = [ref.ask(number) for number in range(len(sleeps))]
            system.drain()
            assert [answer.result(0) for answer in answers] == list(range(len(sleeps)))
        return notes

    notes = course()
    assert [number for what, number in notes if what == "begin"] == list(range(len(sleeps)))
    assert sorted(number for what, number in notes if what == "end") == list(range(len(sleeps)))
    assert course() == notes


def test_a_stop_waits_for_what_its_tasks_do_at_their_end(system: ActorSystem) -> None:
    begun: list[int] = []
    notes: list[str] = []

    class Cleans(Actor[int]):
        async def receive(self, message: int) -> None:
            begun.append(message)
            try:
                await asyncio.sleep(DEADLINE)
            finally:
                await asyncio.sleep(0)
                notes.append(f"cleaned {message}")

    ref = system.spawn(Cleans, event_loop=True, concurrency=2)
    ref.tell_many([0, 1])
    eventually(lambda: len(begun) >= 2, "two have begun")
    eventually(lambda: ref.info().waits_for == "its event loop", "both wait")
    ref.stop()
    ref.ended.result(DEADLINE)
    assert sorted(notes) == ["cleaned 0", "cleaned 1"]


@on_both_hosts
def test_a_cancelled_ask_ends_its_own_message_only(system: ActorSystem, event_loop: bool) -> None:
    doors, notes = gates(3), list[str]()
    ref = system.spawn(Gates, doors, notes, concurrency=2, event_loop=event_loop)
    asked = [ref.ask(number) for number in range(3)]
    until(notes, 2)
    assert asked[0].cancel()
    until(notes, 4)
    assert sorted(notes[2:]) == ["CancelledError at 0", "begin 2"]
    for door in doors[1:]:
        door.set_result("answer")
    assert [answer.result(DEADLINE) for answer in asked[1:]] == ["answer"] * 2
    assert ref.is_alive
