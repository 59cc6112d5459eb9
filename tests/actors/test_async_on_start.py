"""`async def on_start`: messages wait until it has returned."""

import asyncio
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorStopped,
    ActorSystem,
    CallboardError,
    Future,
    SpawnError,
    Supervision,
)
from callboard.channels import Task
from callboard.testing import ManualSystem

DEADLINE = 30.0


class Starts(Actor[str]):
    """Begins when a future from outside is done."""

    def __init__(self, gate: "Future[Any]", notes: list[str]) -> None:
        self.gate, self.notes = gate, notes

    async def on_start(self) -> None:
        self.notes.append("starts")
        await self.gate
        self.notes.append("started")

    def receive(self, message: str) -> str:
        self.notes.append(message)
        return message

    def on_stop(self) -> None:
        self.notes.append("stopped")

    def on_failure(self, error: BaseException, message: Any) -> None:
        self.notes.append(f"{error} at {message}")


@pytest.mark.parametrize("event_loop", [False, True])
def test_messages_wait_until_it_has_ended(system: ActorSystem, event_loop: bool) -> None:
    gate: Future[None] = Future()
    notes: list[str] = []
    ref = system.spawn(Starts, gate, notes, event_loop=event_loop)
    answer = ref.ask("asked")
    while notes != ["starts"]:
        pass
    assert not answer.done()
    gate.set_result(None)
    assert answer.result(DEADLINE) == "asked"
    assert notes == ["starts", "started", "asked"]


@pytest.mark.parametrize("event_loop", [False, True])
def test_its_failure_is_the_actor_s(system: ActorSystem, event_loop: bool) -> None:
    gate: Future[None] = Future()
    notes: list[str] = []
    ref = system.spawn(Starts, gate, notes, event_loop=event_loop, supervision="resume")
    answer = ref.ask("asked")
    gate.set_exception(KeyError("no gate"))
    with pytest.raises(ActorStopped, match="no gate"):
        answer.result(DEADLINE)
    system.drain(DEADLINE)
    assert notes == ["starts", "'no gate' at None", "stopped"]
    assert not ref.is_alive
    assert system.dead_letters.count == 1  # the ask; there was no other message


@pytest.mark.parametrize("event_loop", [False, True])
def test_a_restart_runs_it_again(system: ActorSystem, event_loop: bool) -> None:
    class Retries(Actor[str]):
        async def on_start(self) -> None:
            await self.sleep(0.0)
            tries.append(len(tries))
            if len(tries) < 3:
                raise OSError("not yet")

        def receive(self, message: str) -> int:
            return len(tries)

    tries: list[int] = []
    ref = system.spawn(Retries, event_loop=event_loop, supervision="restart")
    assert ref.ask("").result(DEADLINE) == 3


@pytest.mark.parametrize("event_loop", [False, True])
def test_a_stop_in_the_middle_ends_it(event_loop: bool, manual: ManualSystem) -> None:
    notes: list[str] = []
    ref = manual.spawn(Starts, Future(), notes, event_loop=event_loop)
    ref.tell("waits")
    manual.run_until_idle()
    assert notes == ["starts"]
    ref.stop()
    manual.run_until_idle()
    assert notes == ["starts", "stopped"]
    assert manual.dead_letters.count == 1


def test_asyncio_may_be_used_on_the_event_loop(system: ActorSystem) -> None:
    class Connects(Actor[str]):
        event_loop = True

        async def on_start(self) -> None:
            self.connection = await asyncio.wait_for(asyncio.sleep(0.0, "connected"), 30.0)

        def receive(self, message: str) -> str:
            return self.connection

    assert system.spawn(Connects).ask("").result(DEADLINE) == "connected"


def test_stash_in_on_start_is_an_error(system: ActorSystem) -> None:
    class Stashes(Actor[str]):
        async def on_start(self) -> None:
            try:
                self.stash()
            except CallboardError as error:
                notes.append(str(error))

        def receive(self, message: str) -> int:
            return len(notes)

    notes: list[str] = []
    assert system.spawn(Stashes).ask("").result(DEADLINE) == 1
    assert "which is not handling a message" in notes[0]


def test_it_may_ask_others(system: ActorSystem) -> None:
    class Answers(Actor[str]):
        def receive(self, message: str) -> str:
            return message.upper()

    class Asks(Actor[str]):
        async def on_start(self) -> None:
            self.answer: str = await system.spawn(Answers).ask("from the start")

        def receive(self, message: str) -> str:
            return self.answer

    assert system.spawn(Asks).ask("").result(DEADLINE) == "FROM THE START"


def test_other_hooks_may_not_be_coroutines(system: ActorSystem) -> None:
    class Hooked(Actor[str]):
        async def on_failure(self, *_: Any) -> None:  # type: ignore[override]
            pass

        def receive(self, message: str) -> None:
            pass

    with pytest.raises(SpawnError, match="only `receive`, `on_start` and `on_stop` may be"):
        system.spawn(Hooked)


def test_a_task_whose_hook_returns_a_coroutine_fails_to_start(system: ActorSystem) -> None:
    async def begins() -> None:
        pass

    class Runs(Task):
        def on_start(self) -> Any:
            return begins()

        async def run(self) -> None:
            pass

    with pytest.raises(ActorStopped, match="failed to start") as caught:
        system.spawn(Runs).ready.result(DEADLINE)
    assert "on_start() returned a coroutine" in str(caught.value.__cause__)


def test_an_end_during_the_hook_is_a_failed_start(system: ActorSystem) -> None:
    class Child(Actor[None]):
        def receive(self, message: None) -> None:
            raise ValueError("child")

    class Parent(Actor[None]):
        async def on_start(self) -> None:
            child = self.spawn(Child, supervision=Supervision("escalate"))
            child.tell(None)
            await self.sleep(DEADLINE)

        def receive(self, message: None) -> None:
            pass

    ref = system.spawn(Parent)
    assert ref.ended.result(DEADLINE).reason == "failed to start"
    with pytest.raises(ActorStopped, match="failed to start"):
        ref.ready.result(DEADLINE)
