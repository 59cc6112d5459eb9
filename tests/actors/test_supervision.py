"""Supervision: what happens when an actor fails."""

import logging
import threading
from collections.abc import Callable
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorRef,
    ActorStopped,
    ActorSystem,
    ConfigError,
    DeadLetter,
    SpawnError,
    Supervision,
)
from callboard.testing import ManualSystem


class Worker(Actor[Any]):
    """Counts its messages, and does what callables say."""

    def __init__(self, journal: list[Any] | None = None, name: str = "") -> None:
        self.journal: list[Any] = journal if journal is not None else []
        self.own_name = name
        self.count = 0
        self.journal.append(f"{name}init")

    def on_start(self) -> None:
        self.journal.append(f"{self.own_name}start")

    def receive(self, message: Any) -> Any:
        if message == "fail":
            raise ValueError("as told")
        if callable(message):
            return message(self)
        self.count += 1
        return self.count

    def on_stop(self) -> None:
        self.journal.append(f"{self.own_name}stop")


class Parent(Actor[Any]):
    """Spawns what it is told, and does what callables say."""

    def receive(self, message: Any) -> Any:
        if callable(message):
            return message(self)
        arguments, options = message
        return self.spawn(*arguments, **options)


def spawn_in(parent: ActorRef[Any], *arguments: Any, **options: Any) -> ActorRef[Any]:
    ref: ActorRef[Any] = parent.ask((arguments, options)).result(timeout=30)
    return ref


def ask(ref: ActorRef[Any], message: Any) -> Any:
    return ref.ask(message).result(timeout=30)


# --- directives -----------------------------------------------------------------------------------


def test_an_actor_that_fails_stops_unless_told_otherwise(system: ActorSystem) -> None:
    journal: list[Any] = []
    ref = system.spawn(Worker, journal)
    ref.tell("fail")
    ref.tell("behind it")
    system.drain()
    assert not ref.is_alive
    assert journal == ["init", "start", "stop"]
    assert system.dead_letters.reasons == {"failed": 1, "stopped": 1}


def test_a_resumed_actor_goes_on_with_the_same_object(system: ActorSystem) -> None:
    journal: list[Any] = []
    ref = system.spawn(Worker, journal, supervision="resume")
    assert [ask(ref, "a"), ask(ref, "b")] == [1, 2]
    with pytest.raises(ValueError, match="as told"):
        ask(ref, "fail")
    assert ask(ref, "c") == 3
    assert journal == ["init", "start"]


def test_a_restarted_actor_is_made_anew_from_the_same_arguments(system: ActorSystem) -> None:
    journal: list[Any] = []
    ref = system.spawn(Worker, journal, name="shop", supervision="restart")
    assert [ask(ref, "a"), ask(ref, "b")] == [1, 2]
    with pytest.raises(ValueError, match="as told"):
        ask(ref, "fail")
    assert ask(ref, "c") == 1
    assert journal == ["init", "start", "stop", "init", "start"]
    assert (ref.name, ref.is_alive) == ("shop", True)


def test_a_restart_keeps_what_waits_in_its_order(system: ActorSystem) -> None:
    class Order(Actor[Any]):
        def receive(self, message: Any) -> Any:
            if message == "fail":
                raise ValueError("as told")
            seen.append(message)

    seen: list[Any] = []
    ref = system.spawn(Order, supervision=Supervision("restart", limit=None))
    messages = [number if number % 10 else "fail" for number in range(1_000)]
    ref.tell_many(messages)
    ref.ask("end").result(timeout=30)
    assert seen == [number for number in range(1_000) if number % 10] + ["end"]
    assert system.dead_letters.reasons == {"failed": 100}


def test_the_message_that_failed_is_not_tried_again(system: ActorSystem) -> None:
    ref = system.spawn(Worker, supervision="restart")
    with pytest.raises(ValueError, match="as told"):
        ask(ref, "fail")
    assert ask(ref, "x") == 1
    assert system.dead_letters.failure_count == 1


def test_a_function_chooses_the_directive_by_the_error(system: ActorSystem) -> None:
    def choose(error: BaseException) -> Any:
        return "resume" if isinstance(error, ValueError) else "stop"

    def fail(actor: Worker) -> None:
        raise LookupError("of another kind")

    ref = system.spawn(Worker, supervision=choose)
    with pytest.raises(ValueError, match="as told"):
        ask(ref, "fail")
    assert ask(ref, "x") == 1
    with pytest.raises(LookupError, match="of another kind"):
        ask(ref, fail)
    system.drain()
    assert not ref.is_alive


def raise_again(error: BaseException) -> Any:
    raise error


@pytest.mark.parametrize("choose", [raise_again, lambda error: "explode", lambda error: None])
def test_an_actor_whose_supervisor_fails_or_answers_nonsense_stops(
    system: ActorSystem, choose: Callable[[BaseException], Any]
) -> None:
    ref = system.spawn(Worker, supervision=choose)
    with pytest.raises(ValueError, match="as told"):
        ask(ref, "fail")
    system.drain()
    assert not ref.is_alive


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit, StopIteration])
@pytest.mark.parametrize("told", [True, False])
def test_whatever_an_actor_raises_is_its_own_failure_and_the_worker_goes_on(
    system: ActorSystem, kind: type[BaseException], told: bool
) -> None:
    def fail(actor: Worker) -> None:
        raise kind

    ref = system.spawn(Worker)
    if told:
        ref.tell(fail)
    else:
        assert isinstance(ref.ask(fail).exception(timeout=30), kind)
    system.drain()
    assert not ref.is_alive
    assert ask(system.spawn(Worker), "x") == 1


class Unspeakable(Exception):
    def __repr__(self) -> str:
        raise LookupError("it cannot be said")

    __str__ = __repr__


@pytest.mark.parametrize("directive", ["stop", "resume", "restart"])
def test_an_error_that_cannot_be_printed_is_treated_like_any_other(
    system: ActorSystem, directive: str
) -> None:
    def fail(actor: Worker) -> None:
        raise Unspeakable

    letters: list[DeadLetter] = []
    system.dead_letters.subscribe(letters.append)
    ref = system.spawn(Worker, supervision=directive)
    ref.tell(fail)
    assert isinstance(ref.ask(fail).exception(timeout=30), Unspeakable | ActorStopped)
    system.drain()
    assert ref.is_alive is (directive != "stop")
    assert letters[0].message is fail
    assert isinstance(letters[0].error, Unspeakable)


def test_a_failing_log_changes_nothing(system: ActorSystem) -> None:
    def broken(record: logging.LogRecord) -> bool:
        raise LookupError("a broken filter")

    logger = logging.getLogger("callboard")
    logger.addFilter(broken)
    try:
        resumed = system.spawn(Worker, supervision="resume")
        restarted = system.spawn(Worker, supervision="restart")
        stopped = system.spawn(Worker)
        for ref in [resumed, restarted, stopped]:
            with pytest.raises(ValueError, match="as told"):
                ask(ref, "fail")
        assert [ask(resumed, "x"), ask(restarted, "x")] == [1, 1]
        system.drain()
        assert not stopped.is_alive
    finally:
        logger.removeFilter(broken)


def test_a_failure_is_one_event_with_the_traceback(
    system: ActorSystem, caplog: pytest.LogCaptureFixture
) -> None:
    ref = system.spawn(Worker, name="shop", supervision="resume")
    ref.tell("fail")
    system.drain()
    (record,) = [record for record in caplog.records if record.name == "callboard"]
    assert record.levelname == "ERROR"
    assert "actor failed" in record.message
    assert "/shop" in record.message
    assert 'raise ValueError("as told")' in record.message


# --- on_failure -----------------------------------------------------------------------------------


class Informed(Worker):
    def on_failure(self, error: BaseException, message: Any) -> None:
        self.journal.append((type(error).__name__, message))
        if message == "fail":
            self.journal.append(self.ref.is_alive)


def test_on_failure_is_told_the_error_and_the_message_before_the_supervisor_decides(
    system: ActorSystem,
) -> None:
    journal: list[Any] = []
    ref = system.spawn(Informed, journal)
    ref.tell("fail")
    system.drain()
    assert journal == ["init", "start", ("ValueError", "fail"), True, "stop"]


def test_on_failure_is_told_of_a_failing_hook_without_a_message(system: ActorSystem) -> None:
    class Broken(Informed):
        def on_start(self) -> None:
            raise LookupError("in on_start")

    journal: list[Any] = []
    system.spawn(Broken, journal)
    system.drain()
    assert journal == ["init", ("LookupError", None), "stop"]


def test_an_on_failure_that_fails_is_logged_and_changes_nothing(
    system: ActorSystem, caplog: pytest.LogCaptureFixture
) -> None:
    class Clumsy(Worker):
        def on_failure(self, error: BaseException, message: Any) -> None:
            raise LookupError("in on_failure")

    ref = system.spawn(Clumsy, supervision="resume")
    with pytest.raises(ValueError, match="as told"):
        ask(ref, "fail")
    assert ask(ref, "x") == 1
    assert "on_failure failed" in caplog.text
    assert "in on_failure" in caplog.text


# --- failing at the start and at the end ----------------------------------------------------------


class BrokenInit(Actor[Any]):
    def __init__(self, starts: list[int], needed: int = 1_000_000) -> None:
        starts.append(len(starts))
        if len(starts) < needed:
            raise LookupError("in __init__")

    def receive(self, message: Any) -> str:
        return "alive"


@pytest.mark.parametrize("directive", ["stop", "resume"])
def test_an_actor_whose_init_fails_never_lives(system: ActorSystem, directive: str) -> None:
    starts: list[int] = []
    ref = system.spawn(BrokenInit, starts, supervision=directive)
    asked = ref.ask("x")
    with pytest.raises(ActorStopped):
        asked.result(timeout=30)
    system.drain()
    assert starts == [0]
    (failure,) = system.dead_letters.failures
    assert str(failure[1]) == "in __init__"


def test_wrong_arguments_are_a_failure_of_the_start(system: ActorSystem) -> None:
    ref = system.spawn(Worker, 1, 2, 3, 4)
    system.drain()
    assert not ref.is_alive
    (failure,) = system.dead_letters.failures
    assert isinstance(failure[1], TypeError)


def test_a_start_is_tried_again_until_the_limit(system: ActorSystem) -> None:
    starts: list[int] = []
    ref = system.spawn(BrokenInit, starts, supervision=Supervision("restart", limit=3))
    system.drain()
    assert not ref.is_alive
    assert len(starts) == 4, "the first and three more"


def test_a_start_that_succeeds_in_the_end_finds_what_waited(system: ActorSystem) -> None:
    starts: list[int] = []
    ref = system.spawn(BrokenInit, starts, 5, supervision="restart")
    assert ask(ref, "x") == "alive"
    assert len(starts) == 5


def test_an_actor_that_restarts_for_ever_lets_others_run_and_can_be_stopped() -> None:
    with ActorSystem(workers=1) as system:
        starts: list[int] = []
        storm = system.spawn(BrokenInit, starts, supervision=Supervision("restart", limit=None))
        logging.getLogger("callboard").disabled = True
        try:
            assert ask(system.spawn(Worker), "x") == 1
            storm.stop()
            system.drain()
        finally:
            logging.getLogger("callboard").disabled = False
        assert not storm.is_alive


def test_an_on_stop_that_fails_is_logged_and_the_actor_ends(
    system: ActorSystem, caplog: pytest.LogCaptureFixture
) -> None:
    class Clumsy(Worker):
        def on_stop(self) -> None:
            raise LookupError("in on_stop")

    ref = system.spawn(Clumsy)
    assert ask(ref, "x") == 1
    ref.stop()
    system.drain()
    assert not ref.is_alive
    assert "on_stop failed" in caplog.text


# --- limits and time ------------------------------------------------------------------------------


def test_restarts_are_limited_within_a_window() -> None:
    with ManualSystem() as system:
        policy = Supervision("restart", limit=2, window=10)
        ref = system.spawn(Worker, supervision=policy)
        for _ in range(5):  # one every six seconds: never more than two in ten
            ref.tell("fail")
            system.advance(6)
        assert ref.is_alive
        ref.tell("fail")
        ref.tell("fail")
        system.run_until_idle()
        assert not ref.is_alive


def test_without_a_limit_an_actor_restarts_for_ever(system: ActorSystem) -> None:
    ref = system.spawn(Worker, supervision=Supervision("restart", limit=None))
    ref.tell_many(["fail"] * 50)
    assert ask(ref, "x") == 1


def test_a_limit_of_none_at_all_stops_at_the_first_failure(system: ActorSystem) -> None:
    ref = system.spawn(Worker, supervision=Supervision("restart", limit=0))
    ref.tell("fail")
    system.drain()
    assert not ref.is_alive


def test_what_comes_during_a_back_off_waits_for_the_restart() -> None:
    with ManualSystem() as system:
        ref = system.spawn(Worker, supervision=Supervision("restart", backoff=5))
        ref.tell("fail")
        system.run_until_idle()
        asked = ref.ask("x")
        system.advance(4)
        assert not asked.done()
        system.advance(1)
        assert asked.result() == 1


def test_an_actor_that_backs_off_can_be_stopped() -> None:
    with ManualSystem() as system:
        ref = system.spawn(Worker, supervision=Supervision("restart", backoff=5))
        ref.tell("fail")
        system.run_until_idle()
        asked = ref.ask("x")
        ref.stop()
        system.run_until_idle()
        assert not ref.is_alive
        with pytest.raises(ActorStopped):
            asked.result()
        system.advance(10)
        assert not ref.is_alive
        assert system.dead_letters.reasons == {"failed": 1, "stopped": 1}


def test_drain_waits_for_an_actor_that_backs_off(system: ActorSystem) -> None:
    journal: list[Any] = []
    ref = system.spawn(Worker, journal, supervision=Supervision("restart", backoff=0.01))
    ref.tell("fail")
    system.drain()
    assert journal == ["init", "start", "stop", "init", "start"]
    assert ref.is_alive


# --- families -------------------------------------------------------------------------------------


def test_children_stop_before_their_parent(system: ActorSystem) -> None:
    journal: list[Any] = []

    class Head(Parent):
        def on_stop(self) -> None:
            journal.append("parent stop")

    head = system.spawn(Head)
    children = [spawn_in(head, Worker, journal, f"{number} ") for number in range(3)]
    grandchild = ask(children[0], lambda actor: actor.spawn(Worker, journal, "grand "))
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


def test_an_actor_that_stops_can_spawn_no_children(system: ActorSystem) -> None:
    class Head(Parent):
        def on_stop(self) -> None:
            try:
                self.spawn(Worker)
            except SpawnError as error:
                errors.append(str(error))

    errors: list[str] = []
    head = system.spawn(Head, name="head")
    ask(head, lambda actor: None)
    head.stop()
    system.drain()
    assert errors == ["/head is stopping, and cannot spawn Worker-2"]


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


FAMILY = {
    "one": ["b"],
    "rest": ["b", "c"],
    "all": ["a", "b", "c"],
}


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


# --- the policy itself ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"directive": "explode"}, "no directive 'explode'; there are stop, restart, resume"),
        ({"directive": None}, "no directive None"),
        ({"scope": "some"}, "no scope 'some'; there are one, all, rest"),
        ({"limit": -1}, "a limit of restarts is 0 or more, not -1"),
        ({"limit": "3"}, "a limit of restarts is 0 or more, not '3'"),
        ({"window": -1}, "window is 0 seconds or more, not -1"),
        ({"backoff": float("nan")}, "backoff is 0 seconds or more, not nan"),
        ({"max_backoff": "1"}, "max_backoff is 0 seconds or more, not '1'"),
    ],
)
def test_a_policy_with_a_wrong_value_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Supervision(**options)


@pytest.mark.parametrize("policy", ["explode", 7, []])
def test_spawn_refuses_a_wrong_policy(system: ActorSystem, policy: Any) -> None:
    with pytest.raises(ConfigError, match="no directive"):
        system.spawn(Worker, supervision=policy)
    assert system.actors == []


def test_delays_double_up_to_their_most() -> None:
    policy = Supervision("restart", backoff=0.5, max_backoff=3)
    assert [policy.delay(number) for number in range(5)] == [0.5, 1.0, 2.0, 3, 3]
    assert Supervision("restart").delay(100_000) == 0


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
