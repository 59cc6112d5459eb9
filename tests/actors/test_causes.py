"""Askers, watchers and dead letters get the reason why an actor has stopped."""

import copy
import gc
import traceback
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorStopped,
    ActorSystem,
    DeadLetter,
    Supervision,
    Terminated,
)
from callboard.core.errors import ActorFailed
from callboard.testing import ManualSystem
from tests.actors.supervised import Watching


class Shadowing(Actor[Any]):
    """Gives itself an attribute that actors have."""

    def __init__(self) -> None:
        self.children = []  # type: ignore[misc]

    def receive(self, message: Any) -> None:
        pass


class Late(Actor[Any]):
    def on_start(self) -> None:
        raise LookupError("no such table")

    def receive(self, message: Any) -> None:
        pass


class Failing(Actor[Any]):
    """Fails at its first message, as its children do not."""

    def receive(self, message: Any) -> Any:
        if message == "spawn":
            return self.spawn(Failing)
        raise ValueError(f"not {message}")


def _stopped(ref: ActorRef[Any]) -> ActorStopped:
    error = ref.ask("later").exception(30)
    assert isinstance(error, ActorStopped)
    return error


@pytest.mark.parametrize("directive", ["stop", "restart", "resume"])
@pytest.mark.parametrize(
    ("cls", "what"), [(Shadowing, "AttributeError: "), (Late, "LookupError: no such table")]
)
def test_an_asker_of_an_actor_whose_start_failed_gets_the_reason(
    system: ActorSystem, cls: type[Actor[Any]], what: str, directive: Any
) -> None:
    ref = system.spawn(cls, name="a", supervision=Supervision(directive, limit=2))
    for error in (_stopped(ref), _stopped(ref)):
        assert str(error).startswith(f"/a failed to start: {what}")
        assert "children" in str(error) or cls is Late
        assert isinstance(error.__cause__, ActorFailed)
        printed = "".join(traceback.format_exception(error))
        assert __file__ in printed
        assert ".pyx" not in printed


def test_an_ask_after_a_failure_has_it_as_its_cause(system: ActorSystem) -> None:
    ref = system.spawn(Failing, name="a")
    assert isinstance(ref.ask("first").exception(30), ValueError)
    error = _stopped(ref)
    assert str(error) == "/a failed: ValueError: not first"
    assert "ValueError: not first" in str(error.__cause__)


def test_messages_that_waited_at_a_failure_are_dead_for_that_reason() -> None:
    letters: list[DeadLetter] = []
    with ManualSystem() as system:
        system.dead_letters.subscribe(letters.append)
        ref = system.spawn(Failing, name="a")
        ref.tell_many(["first", "second"])
        asked = ref.ask("third")
        system.run_until_idle()
        ref.tell("fourth")
        system.run_until_idle()
        assert isinstance(asked.exception(0), ActorStopped)
    assert [letter.reason for letter in letters] == ["failed", *["stopped"] * 3]
    assert [str(letter.error) for letter in letters[1:]] == ["/a failed: ValueError: not first"] * 3


def test_a_watcher_gets_the_reason(system: ActorSystem) -> None:
    failing, stopping = system.spawn(Failing), system.spawn(Failing)
    watching = system.spawn(Watching, failing, stopping)
    assert watching.ask("begun").result(30) == []
    failing.tell("first")
    stopping.stop()
    system.drain()
    seen = {message.ref: message for message in watching.ask("seen").result(30)}
    assert seen[failing] == Terminated(failing)
    cause = seen[failing].cause
    assert cause is not None
    assert (cause.type, cause.text) == (ValueError, "not first")
    assert seen[stopping].cause is None


def test_children_and_siblings_that_end_with_another_name_it(system: ActorSystem) -> None:
    parent = system.spawn(Failing, name="parent", supervision=Supervision("stop", scope="all"))
    sibling = system.spawn(Failing, name="sibling")
    child = parent.ask("spawn").result(30)
    parent.tell("first")
    system.drain()
    for ref in (sibling, child):
        assert str(_stopped(ref)) == (
            f"{ref.path} was stopped by its supervisor after /parent failed: ValueError: not first"
        )


def test_an_actor_that_escalates_has_its_failure_as_its_cause(system: ActorSystem) -> None:
    class Parent(Actor[Any]):
        def receive(self, message: Any) -> ActorRef[Any]:
            return self.spawn(Failing, name="child", supervision="escalate")

    parent = system.spawn(Parent, name="parent")
    child = parent.ask("spawn").result(30)
    child.tell("first")
    system.drain()
    assert str(_stopped(child)) == "/parent/child failed: ValueError: not first"
    assert str(_stopped(parent)) == "/parent failed: ValueError: not first"
    assert [path for path, _ in system.dead_letters.fatal] == ["/parent"]


def test_an_ask_after_a_plain_stop_has_no_cause(system: ActorSystem) -> None:
    ref = system.spawn(Failing, name="a")
    ref.stop()
    system.drain()
    error = _stopped(ref)
    assert (str(error), error.__cause__) == ("/a was stopped", None)


def test_an_ask_after_the_systems_end_says_how_the_system_ended() -> None:
    with ActorSystem("shop", workers=1) as system:
        ref = system.spawn(Failing, name="a")
    assert str(_stopped(ref)) == "/a was stopped: its system 'shop' has stopped"
    system = ActorSystem("lost", workers=1)
    ref = system.spawn(Failing, name="a")
    asked = ref.ask("first")
    assert isinstance(asked.exception(30), ValueError)
    other = system.spawn(Failing, name="b")
    del system, asked
    gc.collect()
    error = other.ask("later").exception(30)
    assert "its system 'lost' was garbage-collected" in str(error)


def test_a_failure_that_is_printed_begins_in_the_users_code(system: ActorSystem) -> None:
    async def later(message: Any) -> None:
        raise KeyError(message)

    class Various(Actor[Any]):
        def receive(self, message: Any) -> Any:
            if message == "await":
                return later(message)
            raise KeyError(message)

    ref = system.spawn(Various, supervision="resume")
    for message in ("plain", "await"):
        error = ref.ask(message).exception(30)
        assert error is not None
        frames = traceback.extract_tb(error.__traceback__)
        assert frames[0].filename == __file__
    for _, report in system.dead_letters.failures:
        assert report.traceback.splitlines()[1].startswith(f'  File "{__file__}"')


def test_a_report_of_an_end_keeps_no_actor_alive(system: ActorSystem) -> None:
    ref = system.spawn(Failing)
    ref.tell("first")
    system.drain()
    error = copy.copy(_stopped(ref))
    assert error.__cause__ is None or error.__cause__.__traceback__ is None
