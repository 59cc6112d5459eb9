"""Supervision: restarts, stops and resumes after a failure."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from callboard import Actor, ActorStopped, ActorSystem, ConfigError, DeadLetter, Supervision
from callboard.supervision import Directive
from callboard.testing import ManualSystem
from tests.actors.supervised import Worker, ask

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
def test_an_exception_of_any_kind_fails_its_actor_and_not_the_worker(
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
def test_an_unprintable_error_is_like_any_other(system: ActorSystem, directive: Directive) -> None:
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


def test_a_failure_is_logged_once(system: ActorSystem, caplog: pytest.LogCaptureFixture) -> None:
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


def test_on_failure_gets_error_and_message_before_the_decision(system: ActorSystem) -> None:
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


def test_a_failing_on_failure_is_log(system: ActorSystem, caplog: pytest.LogCaptureFixture) -> None:
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
def test_an_actor_whose_init_fails_never_lives(system: ActorSystem, directive: Directive) -> None:
    starts: list[int] = []
    ref = system.spawn(BrokenInit, starts, supervision=directive)
    asked = ref.ask("x")
    with pytest.raises(ActorStopped):
        asked.result(timeout=30)
    system.drain()
    assert starts == [0]
    (failure,) = system.dead_letters.failures
    assert str(failure[1]) == "in __init__"


def test_wrong_arguments_without_a_signature_fail_the_start(system: ActorSystem) -> None:
    class Hidden(Worker):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)

    ref = system.spawn(Hidden, 1, 2, 3, 4)
    system.drain()
    assert not ref.is_alive
    (failure,) = system.dead_letters.failures
    assert failure[1].type is TypeError


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


def test_a_failing_on_stop_is_logged(system: ActorSystem, caplog: pytest.LogCaptureFixture) -> None:
    class Clumsy(Worker):
        def on_stop(self) -> None:
            raise LookupError("in on_stop")

    ref = system.spawn(Clumsy)
    assert ask(ref, "x") == 1
    ref.stop()
    end = ref.ended.result(30)
    assert end.reason == "failed"
    assert end.cause is not None
    assert (end.cause.type, end.cause.text) == (LookupError, "in on_stop")
    assert not ref.is_alive
    assert "on_stop failed" in caplog.text


# --- limits and time ------------------------------------------------------------------------------


def test_restarts_are_limited_within_a_window(manual: ManualSystem) -> None:
    policy = Supervision("restart", limit=2, window=10)
    ref = manual.spawn(Worker, supervision=policy)
    for _ in range(5):  # one every six seconds: never more than two in ten
        ref.tell("fail")
        manual.advance(6)
    assert ref.is_alive
    ref.tell("fail")
    ref.tell("fail")
    manual.run_until_idle()
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


def test_messages_during_a_back_off_wait_for_the_restart(manual: ManualSystem) -> None:
    ref = manual.spawn(Worker, supervision=Supervision("restart", backoff=5))
    ref.tell("fail")
    manual.run_until_idle()
    asked = ref.ask("x")
    manual.advance(4)
    assert not asked.done()
    manual.advance(1)
    assert asked.result() == 1


def test_an_actor_that_backs_off_can_be_stopped(manual: ManualSystem) -> None:
    ref = manual.spawn(Worker, supervision=Supervision("restart", backoff=5))
    ref.tell("fail")
    manual.run_until_idle()
    asked = ref.ask("x")
    ref.stop()
    manual.run_until_idle()
    assert not ref.is_alive
    with pytest.raises(ActorStopped):
        asked.result()
    manual.advance(10)
    assert not ref.is_alive
    assert manual.dead_letters.reasons == {"failed": 1, "stopped": 1}


def test_drain_waits_for_an_actor_that_backs_off(system: ActorSystem) -> None:
    journal: list[Any] = []
    ref = system.spawn(Worker, journal, supervision=Supervision("restart", backoff=0.01))
    ref.tell("fail")
    system.drain()
    assert journal == ["init", "start", "stop", "init", "start"]
    assert ref.is_alive


# --- the policy itself ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"directive": "explode"}, "a directive must be one of stop, .* escalate, got 'explode'"),
        ({"scope": "some"}, "a scope must be one of one, all, rest, got 'some'"),
        ({"backoff": 60}, "expected a backoff of at most max_backoff, 30 s, got 60 s: give"),
    ],
)
def test_a_policy_with_a_wrong_value_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Supervision(**options)


@pytest.mark.parametrize("policy", ["explode", 7])
def test_spawn_refuses_a_wrong_policy(system: ActorSystem, policy: Any) -> None:
    with pytest.raises(ConfigError, match="a directive must be one of"):
        system.spawn(Worker, supervision=policy)
    assert system.actors == []


def test_delays_double_up_to_their_most() -> None:
    policy = Supervision("restart", backoff=0.5, max_backoff=3)
    assert [policy._delay(number) for number in range(5)] == [0.5, 1.0, 2.0, 3, 3]
    assert Supervision("restart")._delay(100_000) == 0
