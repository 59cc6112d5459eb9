"""Supervision of children: the order of stops, shared restarts, escalation."""

import threading
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, DeadLetter, SpawnError, Supervision
from tests.actors.supervised import Parent, Worker, ask, spawn_in


def test_children_stop_before_their_parent(system: ActorSystem) -> None:
    journal: list[Any] = []

    class Head(Parent):
        def on_stop(self) -> None:
            journal.append("parent stop")

    head = system.spawn(Head)
    children = [spawn_in(head, Worker, journal, f"{number} ") for number in range(3)]
    grandchild = ask(children[0], lambda actor: actor.spawn(Worker, journal, "grand "))
    for ref in [*children, grandchild]:  # what is stopped before it begins has no on_stop()
        assert ask(ref, "begun") == 1
    head.stop()
    system.drain()
    assert not any(ref.is_alive for ref in [head, *children, grandchild])
    stops = [entry for entry in journal if entry.endswith("stop")]
    assert sorted(stops) == ["0 stop", "1 stop", "2 stop", "grand stop", "parent stop"]
    assert stops[-1] == "parent stop"
    assert stops.index("grand stop") < stops.index("0 stop")


def test_children_stop_before_their_parent_restarts(system: ActorSystem) -> None:
    class Head(Parent):
        def on_start(self) -> None:
            starts.append(list(self.children))

        def receive(self, message: Any) -> Any:
            if message == "fail":
                raise ValueError("as told")
            return super().receive(message)

    starts: list[Any] = []
    head = system.spawn(Head, supervision="restart")
    child = spawn_in(head, Worker, name="child")
    with pytest.raises(ValueError, match="as told"):
        ask(head, "fail")
    again = spawn_in(head, Worker, name="child")
    assert not child.is_alive
    assert again.is_alive
    assert starts == [[], []]


@pytest.mark.parametrize("scope", ["all", "rest"])
def test_an_escalation_after_the_parents_end_leaves_siblings_alone(
    system: ActorSystem, caplog: pytest.LogCaptureFixture, scope: Any
) -> None:
    class Child(Actor[ActorRef[Any]]):
        def receive(self, head: ActorRef[Any]) -> None:
            head.stop()  # handled after this message, and before what it escalates
            raise ValueError("as told")

    head = system.spawn(Parent, supervision=Supervision("restart", scope=scope))
    sibling = system.spawn(Worker)
    assert ask(sibling, "begun") == 1
    spawn_in(head, Child, supervision="escalate").tell(head)
    system.drain()
    assert not head.is_alive
    assert ask(sibling, "again") == 2  # it was not restarted
    assert "a supervisor failed" not in caplog.text


@pytest.mark.parametrize("ends", ["stopping", "restarting"])
def test_an_actor_that_stops_or_restarts_can_spawn_no_children(
    system: ActorSystem, ends: str
) -> None:
    class Head(Parent):
        def on_stop(self) -> None:
            try:
                self.spawn(Worker)
            except SpawnError as error:
                errors.append(str(error))

    def fail(actor: Any) -> None:
        raise ValueError("as told")

    errors: list[str] = []
    head = system.spawn(Head, name="head", supervision="restart")
    ask(head, lambda actor: None)
    head.tell(fail) if ends == "restarting" else head.stop()
    system.drain()
    assert errors == [f"/head is {ends}, and cannot spawn Worker-2"]
    assert head.children == []


def test_children_spawned_after_stop_was_called_are_stopped_too(system: ActorSystem) -> None:
    class Head(Parent):
        def receive(self, message: Any) -> Any:
            self.stop()
            return self.spawn(Worker)

    head = system.spawn(Head)
    child = ask(head, "go")
    system.drain()
    assert not head.is_alive
    assert not child.is_alive


FAMILY = {"one": ["b"], "rest": ["b", "c"], "all": ["a", "b", "c"]}


@pytest.mark.parametrize("scope", FAMILY)
@pytest.mark.parametrize("top", [True, False])
def test_a_restart_concerns_those_in_its_scope(system: ActorSystem, scope: Any, top: bool) -> None:
    journal: list[Any] = []
    policy = Supervision("restart", scope=scope)
    parent = None if top else system.spawn(Parent)
    refs = {
        name: system.spawn(Worker, journal, name, supervision=policy)
        if parent is None
        else spawn_in(parent, Worker, journal, name, supervision=policy)
        for name in "abc"
    }
    for ref in refs.values():
        assert ask(ref, "x") == 1
    refs["b"].tell("fail")
    system.drain()
    restarted = [name for name, ref in refs.items() if ask(ref, "x") == 1]
    assert restarted == FAMILY[scope]


@pytest.mark.parametrize("scope", FAMILY)
def test_a_stop_concerns_those_in_its_scope(system: ActorSystem, scope: Any) -> None:
    parent = system.spawn(Parent)
    policy = Supervision("stop", scope=scope)
    refs = {name: spawn_in(parent, Worker, supervision=policy, name=name) for name in "abc"}
    refs["b"].tell("fail")
    system.drain()
    assert [name for name, ref in refs.items() if not ref.is_alive] == FAMILY[scope]
    assert parent.is_alive


# --- escalation -----------------------------------------------------------------------------------


def test_an_escalated_failure_is_the_parents(system: ActorSystem) -> None:
    class Head(Parent):
        def on_failure(self, error: BaseException, message: Any) -> None:
            errors.append((error, message))

    errors: list[Any] = []
    head = system.spawn(Head, supervision="resume")
    child = spawn_in(head, Worker, supervision="escalate")
    sibling = spawn_in(head, Worker)
    error = child.ask("fail").exception(timeout=30)
    system.drain()
    assert errors == [(error, None)]
    assert [head.is_alive, child.is_alive, sibling.is_alive] == [True, False, True]


def test_a_parent_restarts_for_a_childs_failure_with_all_its_children(system: ActorSystem) -> None:
    head = system.spawn(Parent, supervision="restart")
    child = spawn_in(head, Worker, supervision="escalate")
    sibling = spawn_in(head, Worker)
    child.tell("fail")
    system.drain()
    assert [head.is_alive, child.is_alive, sibling.is_alive] == [True, False, False]
    assert ask(head, lambda actor: actor.children) == []


def test_a_failure_escalates_past_every_generation() -> None:
    with pytest.raises(ValueError, match="as told"), ActorSystem() as system:  # noqa: PT012
        head = system.spawn(Parent, supervision="escalate")
        middle = spawn_in(head, Parent, supervision="escalate")
        spawn_in(middle, Worker, supervision="escalate").tell("fail")


def test_a_failure_past_the_top_stops_the_system_and_leaves_its_block() -> None:
    letters: list[DeadLetter] = []
    with pytest.raises(ValueError, match="as told") as caught, ActorSystem() as system:  # noqa: PT012
        system.dead_letters.subscribe(letters.append)
        other = system.spawn(Worker)
        ref = system.spawn(Worker, supervision="escalate")
        assert ask(other, "x") == 1
        ref.tell("fail")
        assert system.join(timeout=30)
    assert caught.traceback[-1].name == "receive"
    assert system.is_closed
    assert [other.is_alive, ref.is_alive] == [False, False]
    assert [letter.reason for letter in letters] == ["failed"]


def test_an_escalation_does_not_hide_the_blocks_own_exception() -> None:
    with pytest.raises(LookupError, match="the user's own"), ActorSystem() as system:  # noqa: PT012
        system.spawn(Worker, supervision="escalate").tell("fail")
        assert system.join(timeout=30)
        raise LookupError("the user's own")


def test_two_failures_at_once_in_one_family_are_one_story() -> None:
    """Siblings that share their fate fail in the same moment, on two workers."""
    with ActorSystem(workers=2) as system:
        barrier = threading.Barrier(2)

        def meet(actor: Worker) -> None:
            barrier.wait(30)
            raise ValueError("both at once")

        policy = Supervision("restart", scope="all", limit=None)
        pair = [system.spawn(Worker, dedicated=True, supervision=policy) for _ in range(2)]
        for _ in range(20):
            for ref in pair:
                ref.tell(meet)
            system.drain()
            assert [ask(ref, "x") for ref in pair] == [1, 1]
