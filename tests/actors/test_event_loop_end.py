"""How a message on the event loop ends: by failure, stop, restart, or the end of the system."""

import asyncio
import subprocess
import sys
import threading
from contextvars import ContextVar
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorStopped,
    ActorSystem,
    DeadLetter,
    DrainTimeout,
    Supervision,
)
from tests.actors.asyncio_callers import Caller, Doubler, slept
from tests.remote.conftest import eventually


@pytest.mark.parametrize(
    "error", [LookupError("as told"), SystemExit(3), KeyboardInterrupt(), asyncio.CancelledError()]
)
def test_a_failure_on_the_loop_is_the_actors(system: ActorSystem, error: BaseException) -> None:
    async def fail(actor: Caller) -> None:
        await asyncio.sleep(0)
        raise error

    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    ref = system.spawn(Caller, event_loop=True, supervision="restart")
    failing = ref.ask(fail)
    assert type(failing.exception(timeout=30)) is type(error)
    assert ref.ask(slept).result(timeout=30) == "awake", "the loop goes on, and so does the actor"
    assert [(letter.message, letter.reason) for letter in letters] == [(fail, "failed")]


class Unfinished(Actor[Any]):
    """Awaits what never comes, and notes how that ends."""

    def __init__(self, notes: list[str], entered: threading.Event) -> None:
        self.notes, self.entered = notes, entered

    async def receive(self, message: Any) -> Any:
        if message != "wait":
            return message
        try:
            self.entered.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.notes.append("cancelled")
            await asyncio.sleep(0)
            raise
        finally:
            self.notes.append("finally")

    def on_stop(self) -> None:
        self.notes.append("on_stop")


def test_a_stopped_actor_cancels_its_task_and_waits_for_its_end(system: ActorSystem) -> None:
    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    notes: list[str] = []
    entered = threading.Event()
    ref = system.spawn(Unfinished, notes, entered, event_loop=True)
    in_work, behind = ref.ask("wait"), ref.ask("behind")
    assert entered.wait(30)
    ref.stop()
    with pytest.raises(ActorStopped, match=f"{ref.path} was stopped; it was in the middle"):
        in_work.result(timeout=30)
    with pytest.raises(ActorStopped, match=f"{ref.path} was stopped"):
        behind.result(timeout=30)
    system.drain()
    assert notes == ["cancelled", "finally", "on_stop"]
    assert [(letter.message, letter.reason) for letter in letters] == [
        ("wait", "stopped"),
        ("behind", "stopped"),
    ]


def test_a_task_is_cancelled_in_a_context_of_nobodys(system: ActorSystem) -> None:
    name = ContextVar("name", default="nobody's")
    seen: list[str] = []

    class Noting(asyncio.Future[None]):
        def cancel(self, msg: Any = None) -> bool:
            seen.append(name.get())
            return super().cancel(msg)

    class Named(Actor[threading.Event]):
        async def receive(self, entered: threading.Event) -> None:
            name.set("the actor's")
            entered.set()
            await Noting()

    entered = threading.Event()
    ref = system.spawn(Named, event_loop=True)
    ref.tell(entered)
    assert entered.wait(30)
    ref.stop()
    system.drain()
    assert seen == ["nobody's"]


def test_a_restart_cancels_the_task_and_keeps_waiting_messages(system: ActorSystem) -> None:
    class Fragile(Actor[Any]):
        def receive(self, message: Any) -> None:
            raise ValueError("for the whole family")

    class Parent(Actor[Any]):
        def receive(self, message: Any) -> tuple[ActorRef[Any], ActorRef[Any]]:
            together = Supervision("restart", scope="all")
            waiting = self.spawn(Unfinished, notes, entered, supervision=together, event_loop=True)
            return waiting, self.spawn(Fragile, supervision=together)

    notes: list[str] = []
    entered = threading.Event()
    waiting, fragile = system.spawn(Parent).ask("children").result(timeout=30)
    in_work = waiting.ask("wait")
    assert entered.wait(30)
    behind = waiting.ask("behind")
    fragile.tell("break")
    with pytest.raises(ValueError, match="for the whole family"):
        in_work.result(timeout=30)
    assert behind.result(timeout=30) == "behind"
    assert notes[:3] == ["cancelled", "finally", "on_stop"]


def test_an_actor_on_the_loop_that_stops_itself_stops_at_an_await(system: ActorSystem) -> None:
    class Quitter(Actor[Any]):
        async def receive(self, message: Any) -> Any:
            self.stop()
            await asyncio.Event().wait()

    with pytest.raises(ActorStopped, match="stopped; it was in the middle"):
        system.spawn(Quitter, event_loop=True).ask("x").result(timeout=30)


def test_a_childs_failure_waits_for_the_message_on_the_loop(system: ActorSystem) -> None:
    class Child(Actor[Any]):
        def receive(self, message: Any) -> None:
            raise LookupError("for the parent")

    class Parent(Actor[Any]):
        def __init__(self) -> None:
            self.child = self.spawn(Child, supervision="escalate")
            self.in_work = False

        async def receive(self, message: Any) -> str:
            self.in_work = True
            self.child.tell("fail")
            await asyncio.to_thread(wait_for_end, self.child)
            self.in_work = False
            return "done"

        def on_failure(self, error: BaseException, message: Any) -> None:
            seen.append((self.in_work, type(error)))

    def wait_for_end(child: ActorRef[Any]) -> None:
        assert isinstance(child.ask("x").exception(timeout=30), ActorStopped)

    seen: list[Any] = []
    ref = system.spawn(Parent, event_loop=True, supervision="resume")
    assert ref.ask("go").result(timeout=30) == "done"
    system.drain()
    assert seen == [(False, LookupError)]


def test_a_system_that_stops_cancels_what_is_on_its_loop() -> None:
    system = ActorSystem(name="short")
    notes: list[str] = []
    entered = threading.Event()
    ref = system.spawn(Unfinished, notes, entered, event_loop=True)
    in_work = ref.ask("wait")
    assert entered.wait(30)
    eventually(lambda: ref.info().waits_for == "its event loop", "it waits")
    with pytest.raises(DrainTimeout, match="waits in the middle of a message"):
        system.drain(timeout=0.01)
    system.stop()
    with pytest.raises(ActorStopped):
        in_work.result(timeout=30)
    assert notes == ["cancelled", "finally", "on_stop"]
    assert not [thread for thread in threading.enumerate() if thread.name == "short-loop"]


def test_a_system_drains_what_is_on_its_loop() -> None:
    with ActorSystem() as system:
        answer = system.spawn(Caller, event_loop=True).ask(slept)
    assert answer.result(timeout=0) == "awake"


def test_a_system_that_needs_no_loop_makes_none() -> None:
    with ActorSystem(name="plain") as system:
        assert system.spawn(Doubler, event_loop=True).ask(1).result(timeout=30) == 2
        assert not [thread for thread in threading.enumerate() if thread.name == "plain-loop"]


def test_a_system_that_is_collected_ends_its_loop(tmp_path: Any) -> None:
    system: ActorSystem | None = ActorSystem(name="lost")
    assert system is not None
    assert system.spawn(Caller, event_loop=True).ask(slept).result(timeout=30) == "awake"
    (thread,) = [thread for thread in threading.enumerate() if thread.name == "lost-loop"]
    del system
    thread.join(30)
    assert not thread.is_alive()


NO_DESCRIPTORS = """
import os, resource
from callboard import Actor, ActorSystem

class Echo(Actor):
    async def receive(self, message):
        return message

with ActorSystem() as system:
    echo = system.spawn(Echo, event_loop=True, supervision="resume")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (os.dup(0), hard))
    print(repr(echo.ask(1).exception(timeout=30)))
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    print(echo.ask(2).result(timeout=30))
"""


def test_a_loop_that_cannot_be_made_is_the_failure_of_who_needs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NO_DESCRIPTORS], capture_output=True, text=True, timeout=120
    )
    assert done.stdout == "OSError(24, 'Too many open files')\n2\n", done.stderr
