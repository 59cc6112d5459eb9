"""Priority policies on a worker: the shipped ones, a user's own, and the limits of a bad one."""

import importlib.util
import logging
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorSystem, ConfigError
from callboard.policies import PriorityPolicy
from callboard.scheduling import priority
from tests.tokenless import tokenless

Hold = Callable[[ActorSystem], AbstractContextManager[None]]

BLOCK = re.compile(r"^```cython turns\.pyx\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Noter(Actor[Any]):
    """Appends its label to a list for each message."""

    def __init__(self, label: str, notes: list[str]) -> None:
        self.label = label
        self.notes = notes

    def receive(self, message: Any) -> None:
        self.notes.append(self.label)


class Burner(Noter):
    """Counts down from the message, which takes its time."""

    def receive(self, message: int) -> None:
        while message > 0:
            message -= 1
        super().receive(message)


class Again(Noter):
    """Is always ready until it has counted down."""

    def receive(self, message: int) -> None:
        super().receive(message)
        if message:
            self.ref.tell(message - 1)


# --- the shipped ones -----------------------------------------------------------------------------


def test_fifo_dispatches_in_the_order_of_becoming_ready(hold: Hold) -> None:
    notes: list[str] = []
    with ActorSystem(priority="fifo", time_slice=3600) as system:
        actors = [system.spawn(Noter, label, notes) for label in "abc"]
        with hold(system):
            for actor in reversed(actors):
                actor.tell_many([1, 2])
    assert "".join(notes) == "ccbbaa"


def test_two_level_dispatches_actors_with_a_priority_first(hold: Hold) -> None:
    notes: list[str] = []
    with ActorSystem(priority="two_level") as system:
        low = system.spawn(Noter, "low", notes)
        high = system.spawn(Noter, "high", notes, priority=1)
        with hold(system):
            low.tell(1)
            high.tell(1)
    assert notes == ["high", "low"]


def test_two_level_lets_a_low_actor_come_to_its_turn(hold: Hold) -> None:
    notes: list[str] = []
    with ActorSystem(priority={"policy": "two_level", "patience": 3}, quantum=1) as system:
        low = system.spawn(Noter, "low", notes)
        high = system.spawn(Again, "high", notes, priority=1)
        with hold(system):
            low.tell_many([1, 2])
            high.tell(20)
    assert [i for i, label in enumerate(notes) if label == "low"] == [3, 7]


def test_weighted_dispatches_the_highest_priority_first(hold: Hold) -> None:
    notes: list[str] = []
    with ActorSystem(priority="weighted") as system:
        actors = [system.spawn(Noter, str(p), notes, priority=p) for p in (0, 7, 3)]
        with hold(system):
            for actor in actors:
                actor.tell(1)
    assert notes == ["7", "3", "0"]


def test_weighted_lets_the_lowest_priority_come_to_its_turn(hold: Hold) -> None:
    notes: list[str] = []
    with ActorSystem(priority={"policy": "weighted", "ageing": 4}, quantum=1) as system:
        low = system.spawn(Noter, "low", notes)
        high = system.spawn(Again, "high", notes, priority=10)
        with hold(system):
            low.tell(1)
            high.tell(200)
    assert 30 <= notes.index("low") <= 40


def test_shortest_first_dispatches_the_actor_with_the_quickest_messages_first(hold: Hold) -> None:
    notes: list[str] = []
    with ActorSystem(priority="shortest_first") as system:
        slow = system.spawn(Burner, "slow", notes)
        quick = system.spawn(Burner, "quick", notes)
        while not (slow.statistics().mean or 0) > (quick.statistics().mean or 0) > 0:
            slow.ask(100_000).result(30)
            quick.ask(0).result(30)
            system.drain()  # an answer comes before its time is counted
        notes.clear()
        with hold(system):
            slow.tell(0)
            quick.tell(0)
    assert notes == ["quick", "slow"]


def test_longest_queue_dispatches_the_actor_with_the_most_messages_first(hold: Hold) -> None:
    notes: list[str] = []
    with ActorSystem(priority="longest_queue", time_slice=3600) as system:
        actors = [system.spawn(Noter, label, notes) for label in "abc"]
        with hold(system):
            for actor, count in zip(actors, (1, 3, 2), strict=True):
                actor.tell_many(range(count))
                assert actor.statistics().queue == count
    assert "".join(notes) == "bbbcca"


@pytest.mark.parametrize(
    "policy", ["fifo", "two_level", "weighted", "shortest_first", "longest_queue"]
)
@pytest.mark.parametrize("workers", [1, 2])
def test_every_policy_loses_no_message_of_many_actors(policy: str, workers: int) -> None:
    class Relay(Actor[int]):
        def __init__(self) -> None:
            self.handled = 0

        def receive(self, message: int) -> int:
            if message < 0:
                return self.handled
            self.handled += 1
            if message:
                ring[(message * 7) % len(ring)].tell(message - 1)
            return 0

    with ActorSystem(priority=policy, workers=workers, quantum=3) as system:
        ring = [system.spawn(Relay, priority=i % 4) for i in range(20)]
        for actor in ring:
            actor.tell(99)
        system.drain()
        assert sum(actor.ask(-1).result(30) for actor in ring) == 20 * 100


def test_shipped_policies_cannot_be_subclassed() -> None:
    with pytest.raises(TypeError, match="Weighted"):
        type("Mine", (priority.Weighted,), {})


# --- a user's own ---------------------------------------------------------------------------------


class LastFirst(PriorityPolicy):
    """A stack."""

    def __init__(self) -> None:
        self.ready_actors: list[ActorRef[Any]] = []

    def put_ready(self, actor: ActorRef[Any]) -> None:
        self.ready_actors.append(actor)

    def fetch_ready(self) -> ActorRef[Any]:
        return self.ready_actors.pop()


def test_a_policy_written_in_python_decides_the_order(hold: Hold) -> None:
    notes: list[str] = []
    with ActorSystem(priority=LastFirst) as system:
        actors = [system.spawn(Noter, label, notes) for label in "abc"]
        with hold(system):
            for actor in actors:
                actor.tell(1)
    assert "".join(notes) == "cba"


def test_a_policys_methods_may_be_attributes_of_its_own(hold: Hold) -> None:
    class Borrowed(PriorityPolicy):
        def __init__(self) -> None:
            actors: list[ActorRef[Any]] = []
            self.__dict__.update(put_ready=actors.append, fetch_ready=actors.pop)

    notes: list[str] = []
    with ActorSystem(priority=Borrowed) as system:
        actors = [system.spawn(Noter, label, notes) for label in "abc"]
        with hold(system):
            for actor in actors:
                actor.tell(1)
    assert "".join(notes) == "cba"


def test_a_policy_sees_what_it_asks_to_have_measured(hold: Hold) -> None:
    seen: list[tuple[int, int | None, float]] = []

    class Curious(LastFirst):
        timed = True
        counted = True

        def put_ready(self, actor: ActorRef[Any]) -> None:
            figures = actor.statistics()
            seen.append((actor.priority, figures.queue, figures.mean or 0.0))
            super().put_ready(actor)

    with ActorSystem(priority=Curious, quantum=1) as system:
        burner = system.spawn(Burner, "a", [], priority=5)
        with hold(system):
            burner.tell_many([10, 10, 10])
    waiting = [(queue, mean > 0) for given, queue, mean in seen if given == 5]
    assert (2, True) in waiting
    assert (1, True) in waiting


def test_each_worker_has_an_instance_of_its_own() -> None:
    made: list[PriorityPolicy] = []

    class Counted(LastFirst):
        def __init__(self) -> None:
            super().__init__()
            self.called = False
            made.append(self)

        def put_ready(self, actor: ActorRef[Any]) -> None:
            self.called = True
            super().put_ready(actor)

    # Without the token each worker runs the actors that live on it, and no others.
    with tokenless(priority=Counted, workers=2, threading="assigned") as system:
        for _ in range(4):
            system.spawn(Noter, "a", []).ask(1).result(30)
    assert sum(policy.called for policy in made if isinstance(policy, Counted)) == 2


@pytest.fixture(scope="module")
def turns(root: Path, tmp_path_factory: pytest.TempPathFactory) -> type[PriorityPolicy]:
    """Compile the page's policy against the sources, in the shape in which they are installed."""
    pytest.importorskip("Cython", reason="Cython is not installed")
    compiler = os.environ.get("CXX") or shutil.which("c++") or pytest.skip("no C++ compiler")
    (source,) = BLOCK.findall((root / "docs" / "policies.md").read_text(encoding="utf-8"))
    folder = tmp_path_factory.mktemp("turns")
    shutil.copytree(root / "actors", folder / "callboard")
    for lower in ("core", "mailbox", "scheduling"):
        shutil.copytree(root / lower, folder / "callboard" / lower)
    (folder / "turns.pyx").write_text(source, encoding="utf-8")
    module = folder / f"turns{sysconfig.get_config_var('EXT_SUFFIX')}"
    cythonize = [sys.executable, "-m", "cython", "--cplus", "-3", f"-I{folder}"]
    directives = ["-X", "freethreading_compatible=True"]
    subprocess.run([*cythonize, *directives, "turns.pyx"], cwd=folder, check=True)
    options = ["-std=c++17", "-O0", "-shared", "-fPIC"]
    includes = [f"-I{folder}", f"-I{sysconfig.get_path('include')}"]
    command = [*compiler.split(), *options, *includes, "turns.cpp", "-o", str(module)]
    subprocess.run(command, cwd=folder, check=True)
    spec = importlib.util.spec_from_file_location("turns", module)
    assert spec is not None
    assert spec.loader is not None
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    policy: type[PriorityPolicy] = loaded.Turns
    return policy


@pytest.mark.timeout(600)  # a compiler is slow on a busy machine
def test_a_policy_in_cython_decides_the_order(turns: type[PriorityPolicy], hold: Hold) -> None:
    notes: list[str] = []
    with ActorSystem(priority=turns) as system:
        plain = [system.spawn(Noter, label, notes) for label in "abc"]
        given = [system.spawn(Noter, label, notes, priority=1) for label in "ABC"]
        with hold(system):
            for actor in [*plain, *given]:
                actor.tell(1)
    assert "".join(notes) == "AaBbCc"


@pytest.mark.timeout(600)
@pytest.mark.parametrize("language", ["Python", "Cython"])
def test_a_users_policy_loses_no_message_with_two_workers(
    language: str, request: pytest.FixtureRequest
) -> None:
    class Pong(Actor[int]):
        def receive(self, message: int) -> None:
            if message:
                actors[message % len(actors)].tell(message - 1)

    policy = LastFirst if language == "Python" else request.getfixturevalue("turns")
    with ActorSystem(priority=policy, workers=2) as system:
        actors = [system.spawn(Pong, priority=i % 2) for i in range(10)]
        for actor in actors:
            actor.tell(200)
        system.drain()
        assert sum(actor.statistics().messages for actor in actors) == 10 * 201


# --- and what it cannot do ------------------------------------------------------------------------


class RaisesAtPut(LastFirst):
    def put_ready(self, actor: ActorRef[Any]) -> None:
        super().put_ready(actor)
        if len(self.ready_actors) == 3:
            raise ValueError("three is too many")


class RaisesAtPutAndForgets(LastFirst):
    def put_ready(self, actor: ActorRef[Any]) -> None:
        if len(self.ready_actors) == 3:
            raise ValueError("three is too many")
        super().put_ready(actor)


class RaisesAtFetch(LastFirst):
    def fetch_ready(self) -> ActorRef[Any]:
        if len(self.ready_actors) == 4:
            raise KeyError("four is too many")
        return super().fetch_ready()


class AnswersNone(LastFirst):
    def fetch_ready(self) -> Any:
        return None if len(self.ready_actors) == 4 else super().fetch_ready()


class AnswersNonsense(LastFirst):
    def fetch_ready(self) -> Any:
        return ["no actor"] if len(self.ready_actors) == 4 else super().fetch_ready()


class AnswersTwice(LastFirst):
    """Answers the same actor for ever once it has four."""

    same: Any = None

    def fetch_ready(self) -> Any:
        if self.same is None and len(self.ready_actors) < 4:
            return super().fetch_ready()
        if self.same is None:
            self.same = self.ready_actors[-1]
        return self.same


class AnswersWhatCannotBeShown(LastFirst):
    def fetch_ready(self) -> Any:
        class Unshowable:
            def __repr__(self) -> str:
                raise RuntimeError("no repr")

        return Unshowable() if len(self.ready_actors) == 4 else super().fetch_ready()


class Exits(LastFirst):
    def fetch_ready(self) -> Any:
        if len(self.ready_actors) == 4:
            raise SystemExit
        return super().fetch_ready()


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    messages = (record.getMessage() for record in caplog.records)
    return [message for message in messages if "a priority policy failed" in message]


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (RaisesAtPut, "three is too many"),
        (RaisesAtPutAndForgets, "three is too many"),
        (RaisesAtFetch, "four is too many"),
        (AnswersNone, "4 actors are ready, and fetch_ready() returned None"),
        (AnswersNonsense, "4 actors are ready, and fetch_ready() returned ['no actor']"),
        (AnswersTwice, "which is not ready on this worker"),
        (AnswersWhatCannotBeShown, "Unshowable, whose repr() raised RuntimeError>"),
        (Exits, "SystemExit"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_bad_policy_is_given_up_with_one_event_and_nothing_is_lost(
    policy: type[PriorityPolicy], problem: str, hold: Hold, caplog: pytest.LogCaptureFixture
) -> None:
    notes: list[str] = []
    with caplog.at_level(logging.ERROR), ActorSystem(priority=policy, quantum=1) as system:
        actors = [system.spawn(Noter, label, notes) for label in "abcd"]
        system.drain()
        for _ in range(2):
            with hold(system):
                for actor in actors:
                    actor.tell_many([1, 2, 3])
            system.drain()
    assert sorted(notes) == sorted("abcd" * 6)
    assert notes[12:] == list("abcd" * 3)  # the second time it is Fifo for good
    (event,) = events(caplog)
    assert problem in event
    assert "worker=callboard-0" in event
    assert policy.__name__ in event


def test_another_workers_actor_is_not_run(hold: Hold, caplog: pytest.LogCaptureFixture) -> None:
    strangers: list[ActorRef[Any]] = []

    class AnswersAStranger(LastFirst):
        def fetch_ready(self) -> ActorRef[Any]:
            return strangers[0] if len(self.ready_actors) == 4 else super().fetch_ready()

    notes: list[str] = []
    with (
        caplog.at_level(logging.ERROR),
        ActorSystem("other", workers=1) as other,
        ActorSystem(workers=1, priority=AnswersAStranger) as system,
    ):
        strangers.append(other.spawn(Noter, "stranger", notes))
        actors = [system.spawn(Noter, label, notes) for label in "abcd"]
        system.drain()
        with hold(other), hold(system):
            for actor in [*strangers, *actors]:
                actor.tell(1)
    assert sorted(notes) == ["a", "b", "c", "d", "stranger"]
    (event,) = events(caplog)
    assert "which is not ready on this worker" in event


def test_a_policy_that_starves_an_actor_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    class Forgetful(PriorityPolicy):
        """Forgets every actor without a priority."""

        def __init__(self) -> None:
            self.patience = 50
            self.ready_actors: deque[ActorRef[Any]] = deque()

        def put_ready(self, actor: ActorRef[Any]) -> None:
            if actor.priority:
                self.ready_actors.append(actor)

        def fetch_ready(self) -> ActorRef[Any]:
            return self.ready_actors.popleft()

    class Greedy(Again):
        def receive(self, message: int) -> None:
            if message == 500:
                self.spawn(Noter, "starved", notes).tell(1)
            super().receive(message)

    notes: list[str] = []
    with caplog.at_level(logging.ERROR), ActorSystem(priority=Forgetful, quantum=1) as system:
        system.spawn(Greedy, "greedy", notes, priority=1).tell(500)
    assert notes.count("greedy") == 501
    assert notes.index("starved") in range(50, 53)
    (event,) = events(caplog)
    assert "was passed by 50 times" in event


class Unfinished(PriorityPolicy):
    def put_ready(self, actor: ActorRef[Any]) -> None:
        """Note nothing."""


def test_a_policy_that_lacks_a_method_is_refused_before_the_system_starts() -> None:
    with pytest.raises(ConfigError, match="Unfinished has no method `fetch_ready`"):
        ActorSystem(priority=Unfinished)
