"""`async def on_stop`: the actor ends or restarts when it has returned."""

import asyncio
from typing import Any

import pytest

from callboard import Actor, ActorSystem, DrainTimeout, Future
from callboard.channels import Task
from callboard.testing import ManualSystem
from tests.actors.gates import on_both_hosts, until

DEADLINE = 30.0


class Leaves(Actor[str]):
    """Ends when a future from outside is done."""

    def __init__(self, gate: "Future[Any]", notes: list[str]) -> None:
        self.gate, self.notes = gate, notes

    def receive(self, message: str) -> str:
        if message == "fail":
            raise ValueError(message)
        self.notes.append(message)
        return message

    async def on_stop(self) -> None:
        self.notes.append("leaves")
        try:
            await self.gate
        except BaseException as error:
            self.notes.append(type(error).__name__)
            raise
        self.notes.append("left")


@on_both_hosts
def test_an_actor_has_ended_when_it_has(system: ActorSystem, event_loop: bool) -> None:
    gate: Future[None] = Future()
    notes: list[str] = []
    ref = system.spawn(Leaves, gate, notes, event_loop=event_loop, name="leaves")
    ref.ready.result(DEADLINE)
    ref.stop()
    ended = ref.ended
    until(notes, 1)
    assert not ref.is_alive
    assert not ended.done()
    assert not system._runtime.team.is_idle()
    asked = ref.ask("late")
    gate.set_result(None)
    assert ended.result(DEADLINE).reason == "stopped"
    assert notes == ["leaves", "left"]
    assert asked.exception(DEADLINE) is not None


@on_both_hosts
def test_a_restart_waits_for_it(system: ActorSystem, event_loop: bool) -> None:
    gate: Future[None] = Future()
    notes: list[str] = []
    ref = system.spawn(Leaves, gate, notes, event_loop=event_loop, supervision="restart")
    ref.tell("fail")
    asked = ref.ask("after")
    until(notes, 1)
    assert not asked.done()
    gate.set_result(None)
    assert asked.result(DEADLINE) == "after"
    assert notes == ["leaves", "left", "after"]


@on_both_hosts
def test_a_stop_during_a_restart_runs_on_stop_once(system: ActorSystem, event_loop: bool) -> None:
    gate: Future[None] = Future()
    notes: list[str] = []
    ref = system.spawn(Leaves, gate, notes, event_loop=event_loop, supervision="restart")
    ref.tell("fail")
    until(notes, 1)
    ref.stop()
    gate.set_result(None)
    ref.ended.result(DEADLINE)
    assert notes == ["leaves", "left"]


@on_both_hosts
def test_its_error_is_logged_and_the_actor_ends(system: ActorSystem, event_loop: bool) -> None:
    gate: Future[None] = Future()
    notes: list[str] = []
    ref = system.spawn(Leaves, gate, notes, event_loop=event_loop)
    ref.ready.result(DEADLINE)
    ref.stop()
    gate.set_exception(KeyError("gate"))
    end = ref.ended.result(DEADLINE)
    assert end.cause is not None
    assert end.cause.type is KeyError
    assert [path for path, _ in system.dead_letters.failures] == [ref.path]


@on_both_hosts
def test_children_end_before_it(system: ActorSystem, event_loop: bool) -> None:
    gate: Future[None] = Future()
    gate.set_result(None)
    notes: list[str] = []

    class Child(Actor[str]):
        def receive(self, message: str) -> None:
            pass

        def on_stop(self) -> None:
            notes.append("child")

    class Parent(Leaves):
        def on_start(self) -> None:
            self.spawn(Child)

    ref = system.spawn(Parent, gate, notes, event_loop=event_loop)
    ref.ready.result(DEADLINE)
    (child,) = ref.children
    child.ready.result(DEADLINE)  # one that never started has no last word
    ref.stop()
    ref.ended.result(DEADLINE)
    assert notes == ["child", "leaves", "left"]


@on_both_hosts
def test_leaving_a_system_waits_for_it(event_loop: bool) -> None:
    notes: list[str] = []

    class Closes(Actor[str]):
        def receive(self, message: str) -> None:
            pass

        async def on_stop(self) -> None:
            await self.sleep(0.001)
            if event_loop:
                await asyncio.sleep(0)
            notes.append("closed")

    with ActorSystem("leaving") as system:
        system.spawn(Closes, event_loop=event_loop).ready.result(DEADLINE)
    assert notes == ["closed"]


def test_a_hook_that_exceeds_the_timeout_is_left_behind() -> None:
    notes: list[str] = []
    system = ActorSystem("late")
    system.spawn(Leaves, Future(), notes, event_loop=True, name="stays")
    (stays,) = system.actors
    stays.ready.result(DEADLINE)
    stays.stop()
    until(notes, 1)  # it has begun, however late a worker is
    with pytest.raises(DrainTimeout, match="/stays"):
        system.stop(timeout=0.05)
    until(notes, 2)  # with the loop its tasks end
    assert notes == ["leaves", "CancelledError"]


@on_both_hosts
def test_a_plain_method_may_return_a_coroutine(system: ActorSystem, event_loop: bool) -> None:
    gate: Future[None] = Future()
    notes: list[str] = []

    class Returns(Leaves):
        def on_stop(self) -> Any:
            return super().on_stop()

    ref = system.spawn(Returns, gate, notes, event_loop=event_loop)
    ref.ready.result(DEADLINE)
    ref.stop()
    until(notes, 1)
    gate.set_result(None)
    ref.ended.result(DEADLINE)
    assert notes == ["leaves", "left"]


def test_nobody_awaits_that_of_a_task(system: ActorSystem) -> None:
    class Runs(Task):
        async def run(self) -> None:
            pass

        def on_stop(self) -> Any:
            return asyncio.sleep(0)

    end = system.spawn(Runs).ended.result(DEADLINE)
    assert "on_stop() returned a coroutine" in str(end.cause)


def test_a_manual_system_lets_it_wait_by_its_clock() -> None:
    notes: list[float] = []

    class Sleeps(Actor[str]):
        def receive(self, message: str) -> None:
            pass

        async def on_stop(self) -> None:
            await self.sleep(5.0)
            notes.append(system.now)

    with ManualSystem() as system:
        ref = system.spawn(Sleeps)
        system.run_until_idle()
        ref.stop()
        system.drain()
    assert notes == [5.0]
