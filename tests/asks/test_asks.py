"""Policies for asks: `Retry`, `CircuitBreaker`, `RateLimit`, and nested ones."""

from collections.abc import Iterator
from typing import Any

import pytest

from callboard import (
    Actor,
    ActorSystem,
    AskCancelled,
    AskTimeout,
    BoundedMailbox,
    Future,
    SystemClosed,
)
from callboard.asks import CircuitBreaker, CircuitOpen, RateLimit, Retry, TooManyAsks
from callboard.testing import ManualSystem
from tests.waiting import in_threads

DEADLINE = 30.0


class Flaky(Actor[Any]):
    """Fails some times, then answers with the time."""

    def __init__(self, failures: int = 0, log: list[float] | None = None) -> None:
        self.failures = failures
        self.log: list[float] = [] if log is None else log

    def receive(self, message: Any) -> Any:
        now = self.system.now  # type: ignore[attr-defined]
        self.log.append(now)
        self.failures -= 1
        if self.failures >= 0:
            raise LookupError(message)
        return now


class Silent(Actor[Any]):
    """Answers never, and counts how often it was asked."""

    def __init__(self, asked: list[Any]) -> None:
        self.asked = asked

    async def receive(self, message: Any) -> None:
        self.asked.append(message)
        await self.sleep(1e6)


@pytest.fixture
def system() -> Iterator[ManualSystem]:
    with ManualSystem() as system:
        yield system
        system.stop()


# --- retry ----------------------------------------------------------------------------------------


def test_an_ask_is_tried_again_after_longer_and_longer_waits(system: ManualSystem) -> None:
    log: list[float] = []
    flaky = system.spawn(Flaky, 3, log, supervision="resume")
    retry = Retry(5, backoff=1, factor=3, longest=5, jitter=0, on=LookupError)
    assert retry.call(flaky.ask, "what").result() == 9
    assert log == [0, 1, 4, 9]


def test_the_last_attempts_error_is_the_outcome(system: ManualSystem) -> None:
    log: list[float] = []
    flaky = system.spawn(Flaky, 9, log, supervision="resume")
    with pytest.raises(LookupError, match="what"):
        Retry(2, backoff=0, on=(LookupError,)).call(flaky.ask, "what").result()
    assert len(log) == 2
    with pytest.raises(LookupError):
        Retry(5).call(flaky.ask, "no error of its kind").result()
    assert len(log) == 3


def test_each_attempt_has_the_timeout_of_its_ask(system: ManualSystem) -> None:
    asked: list[Any] = []
    silent = system.spawn(Silent, asked)
    with pytest.raises(AskTimeout):
        Retry(3, backoff=1, jitter=0).call(silent.ask, "what", timeout=2).result()
    assert system.now == 2 + 1 + 2 + 2 + 2


def test_the_waits_are_random_within_the_jitter() -> None:
    retry = Retry(backoff=1, jitter=0.5)
    waits = {retry._wait_after(1) for _ in range(100)}
    assert len(waits) > 1
    assert all(0.5 <= wait <= 1 for wait in waits)
    assert Retry(factor=10.0, longest=7, jitter=0)._wait_after(5000) == 7


def test_a_retry_that_waits_can_be_cancelled(system: ManualSystem) -> None:
    log: list[float] = []
    flaky = system.spawn(Flaky, 9, log, supervision="resume")
    answer = Retry(9, backoff=5, jitter=0, on=LookupError).call(flaky.ask, "what")
    system.run_until_idle()
    assert answer.cancel()
    system.advance(100)
    assert log == [0]
    with pytest.raises(AskCancelled, match="an ask that waits to be sent was cancelled"):
        answer.result()


def test_a_retry_that_is_cancelled_cancels_its_ask(system: ManualSystem) -> None:
    asked: list[Any] = []
    answer = Retry(9).call(system.spawn(Silent, asked).ask, "what")
    system.run_until_idle()
    assert answer.cancel()
    system.drain(0)
    assert asked == ["what"]


def test_a_retry_that_waits_fails_when_its_system_stops() -> None:
    system = ManualSystem()
    flaky = system.spawn(Flaky, 9, supervision="resume")
    answer = Retry(9, backoff=5, on=LookupError).call(flaky.ask, "what")
    system.run_until_idle()
    assert not answer.done()
    system.stop()
    with pytest.raises(SystemClosed):
        answer.result(0)


def test_a_full_mailbox_does_not_hold_up_the_timers(system: ManualSystem) -> None:
    asked: list[Any] = []
    silent = system.spawn(Silent, asked, mailbox=BoundedMailbox(1, timeout=1e6))
    answers = [Retry(2, backoff=1, jitter=0).call(silent.ask, n, timeout=1) for n in range(1)]
    system.run_until_idle()
    silent.tell("full")
    system.advance(10)
    assert all(answer.done() for answer in answers)


def test_an_actor_awaits_a_retry_in_threads_of_a_system() -> None:
    class Counting(Actor[int]):
        def __init__(self) -> None:
            self.count = 0

        def receive(self, message: int) -> int:
            self.count += 1
            if self.count % 3:
                raise LookupError
            return self.count

    class Asking(Actor[Any]):
        async def receive(self, message: Any) -> Any:
            return await Retry(3, backoff=0.001, on=LookupError).call(message.ask, 0)

    with ActorSystem(workers=2) as system:
        counting = system.spawn(Counting, supervision="resume")
        asking = system.spawn(Asking)
        answers = [asking.ask(counting).result(DEADLINE) for _ in range(3)]
        assert answers == [3, 6, 9]


# --- circuit breaker ------------------------------------------------------------------------------


def test_a_circuit_opens_after_failures_and_closes_after_an_answer(system: ManualSystem) -> None:
    log: list[float] = []
    flaky = system.spawn(Flaky, 4, log, supervision="resume")
    breaker = CircuitBreaker(2, 10)

    def outcome() -> Any:
        answer = breaker.call(flaky.ask, "what")
        system.run_until_idle()
        error = answer.exception(0)
        return answer.result(0) if error is None else type(error)

    assert breaker.state == "closed"
    assert [outcome() for _ in range(2)] == [LookupError] * 2
    assert breaker.state == "open"
    assert outcome() is CircuitOpen
    assert len(log) == 2
    system.advance(10)
    assert breaker.state == "half-open"
    assert outcome() is LookupError
    assert breaker.state == "open"
    system.advance(9)
    assert outcome() is CircuitOpen
    system.advance(1)
    assert outcome() is LookupError
    system.advance(10)
    assert outcome() == 30
    assert breaker.state == "closed"
    assert len(log) == 5


def test_an_answer_in_between_starts_the_count_of_failures_anew(system: ManualSystem) -> None:
    breaker = CircuitBreaker(2, 10)
    for _ in range(3):
        flaky = system.spawn(Flaky, 1, supervision="resume")
        for _ in range(2):
            breaker.call(flaky.ask, "what")
            system.run_until_idle()
    assert breaker.state == "closed"


def test_a_half_open_circuit_lets_one_ask_through(system: ManualSystem) -> None:
    asked: list[Any] = []
    silent = system.spawn(Silent, asked)
    breaker = CircuitBreaker(1, 10)
    first = breaker.call(silent.ask, 1, timeout=1)
    system.advance(11)
    assert isinstance(first.exception(0), AskTimeout)
    trial = breaker.call(silent.ask, 2)
    refused = breaker.call(silent.ask, 3).exception(0)
    assert isinstance(refused, CircuitOpen)
    assert "one ask tries it" in str(refused)
    trial.cancel()
    assert not breaker.call(silent.ask, 4).done(), "the cancelled one told nothing"


def test_an_outcome_from_before_the_circuit_opened_changes_nothing(system: ManualSystem) -> None:
    promises: list[Future[int]] = []

    class Promising(Actor[int]):
        def receive(self, message: int) -> Future[int]:
            promises.append(Future())
            return promises[-1]

    ref = system.spawn(Promising)
    breaker = CircuitBreaker(1, 10)
    for number in range(3):
        breaker.call(ref.ask, number)
    system.run_until_idle()
    promises[0].set_exception(LookupError())
    assert breaker.state == "open"
    promises[1].set_result(1)
    assert breaker.state == "open", "an early ask says nothing of the target now"
    system.advance(9)
    promises[2].set_exception(LookupError())
    system.advance(1)
    assert breaker.state == "half-open", "nor does it make the circuit stay open for longer"


def test_other_errors_are_no_failures_of_the_circuit(system: ManualSystem) -> None:
    flaky = system.spawn(Flaky, 9, supervision="resume")
    breaker = CircuitBreaker(1, 10, on=AskTimeout)
    breaker.call(flaky.ask, "what")
    system.run_until_idle()
    assert breaker.state == "closed"


# --- rate limit -----------------------------------------------------------------------------------


def test_asks_wait_for_their_turn_in_their_order(system: ManualSystem) -> None:
    log: list[float] = []
    flaky = system.spawn(Flaky, 0, log)
    limit = RateLimit(per_second=2, burst=3)
    answers = [limit.call(flaky.ask, n) for n in range(6)]
    system.run_until_idle()
    assert [answer.done() for answer in answers] == [True] * 3 + [False] * 3
    assert answers[5].result() == 1.5
    assert log == [0, 0, 0, 0.5, 1, 1.5]
    system.advance(100)
    assert limit.call(flaky.ask, "after a rest").result() == 101.5


def test_the_number_of_waiting_asks_is_limited(system: ManualSystem) -> None:
    flaky = system.spawn(Flaky)
    limit = RateLimit(1, waiting=2)
    answers = [limit.call(flaky.ask, n) for n in range(4)]
    assert isinstance(answers[3].exception(0), TooManyAsks)
    assert [answer.result() for answer in answers[:3]] == [0, 1, 2]


def test_an_ask_that_waits_for_its_turn_can_be_cancelled(system: ManualSystem) -> None:
    log: list[float] = []
    flaky = system.spawn(Flaky, 0, log)
    limit = RateLimit(1)
    answers = [limit.call(flaky.ask, n) for n in range(3)]
    assert answers[1].cancel()
    assert answers[2].result() == 1
    assert log == [0, 1]


def test_cancelled_asks_give_their_turns_and_places_to_others(system: ManualSystem) -> None:
    flaky = system.spawn(Flaky)
    limit = RateLimit(1, waiting=10)
    answers = [limit.call(flaky.ask, n) for n in range(11)]
    assert isinstance(limit.call(flaky.ask, "too many").exception(0), TooManyAsks)
    for answer in answers[1:10]:
        answer.cancel()
    later = [limit.call(flaky.ask, n) for n in range(9)]
    assert isinstance(limit.call(flaky.ask, "too many").exception(0), TooManyAsks)
    assert answers[10].result() == 1
    assert [answer.result() for answer in later] == [2, 3, 4, 5, 6, 7, 8, 9, 10]


def test_the_next_turn_comes_early_after_cancelled_waits(system: ManualSystem) -> None:
    flaky = system.spawn(Flaky)
    limit = RateLimit(1)
    answers = [limit.call(flaky.ask, n) for n in range(5)]
    system.advance(0.25)
    for answer in answers[1:]:
        answer.cancel()
    assert limit.call(flaky.ask, "next").result() == 1
    system.advance(1.5)
    assert limit.call(flaky.ask, "after a rest").result() == 2.5


def test_asks_that_wait_for_their_turn_fail_when_their_system_stops(manual: ManualSystem) -> None:
    limit = RateLimit(1)
    system = ManualSystem()
    flaky, lasting = system.spawn(Flaky), manual.spawn(Flaky)
    answers = [limit.call(flaky.ask, n) for n in range(3)]
    answer = limit.call(lasting.ask, "of another system")
    system.stop()
    assert all(isinstance(answer.exception(0), SystemClosed) for answer in answers[1:])
    assert isinstance(limit.call(flaky.ask, "late").exception(), SystemClosed)
    assert answer.result() == 1


def test_the_timeout_of_an_ask_begins_with_its_turn(system: ManualSystem) -> None:
    silent = system.spawn(Silent, [])
    limit = RateLimit(1)
    limit.call(silent.ask, 0)
    with pytest.raises(AskTimeout):
        limit.call(silent.ask, 1, timeout=2).result()
    assert system.now == 1 + 2


def test_asks_of_many_threads_are_no_faster_than_allowed() -> None:
    class Echo(Actor[int]):
        def receive(self, message: int) -> int:
            return message

    with ActorSystem(workers=2) as system:
        echo = system.spawn(Echo)
        limit = RateLimit(1000, burst=10)
        answers: list[Any] = []

        def ask() -> None:
            answers.extend(limit.call(echo.ask, n) for n in range(20))

        in_threads(lambda _: ask(), range(4))
        assert sorted(answer.result(DEADLINE) for answer in answers) == sorted([*range(20)] * 4)


# --- together -------------------------------------------------------------------------------------


def test_policies_can_be_put_into_each_other(system: ManualSystem) -> None:
    log: list[float] = []
    flaky = system.spawn(Flaky, 9, log, supervision="resume")
    retry = Retry(5, backoff=1, factor=1, jitter=0, on=LookupError)
    breaker, limit = CircuitBreaker(3, 100), RateLimit(0.5)
    answer = retry.call(limit.call, breaker.call, flaky.ask, "what")
    with pytest.raises(CircuitOpen):
        answer.result()
    assert log == [0, 2, 4]


def test_a_policy_needs_a_system(system: ManualSystem) -> None:
    def ask(message: Any) -> Any:
        return flaky.ask(message)

    flaky = system.spawn(Flaky)
    for policy in (Retry(), CircuitBreaker(), RateLimit(1)):
        with pytest.raises(TypeError, match="not a method of a ref of an actor system"):
            policy.call(ask, "what")
    for policy in (
        Retry(system=system),
        CircuitBreaker(system=system),
        RateLimit(1, system=system),
    ):
        answer = policy.call(ask, "what")
        system.run_until_idle()
        assert answer.result(0) == 0


def test_a_function_that_returns_no_future_is_an_error(system: ManualSystem) -> None:
    with pytest.raises(TypeError, match="returned no future: None"):
        CircuitBreaker(system=system).call(lambda: None).result(0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Retry(0),
        lambda: Retry(backoff=-1),
        lambda: Retry(factor=0.5),
        lambda: Retry(jitter=2),
        lambda: CircuitBreaker(0),
        lambda: CircuitBreaker(reset_after=-1),
        lambda: RateLimit(0),
        lambda: RateLimit(1, burst=0),
        lambda: RateLimit(1, waiting=-1),
    ],
)
def test_numbers_out_of_range_are_errors_at_the_call(make: Any) -> None:
    with pytest.raises(ValueError):  # noqa: PT011
        make()


@pytest.mark.parametrize(
    ("policy", "options"),
    [(Retry, {"on": "all"}), (CircuitBreaker, {"on": 5}), (Retry, {"system": 5})],
)
def test_other_kinds_of_options_are_errors_at_the_call(policy: Any, options: Any) -> None:
    with pytest.raises(TypeError, match=r"expects classes of|expected an ActorSystem"):
        policy(**options)


@pytest.mark.parametrize("policy", [Retry(), CircuitBreaker(), RateLimit(1)])
def test_a_wrong_timeout_is_an_error_at_the_call(system: ManualSystem, policy: Any) -> None:
    asked: list[Any] = []
    ref = system.spawn(Silent, asked)
    with pytest.raises(ValueError, match=r"the timeout of ask\(\) must be a number of seconds"):
        policy.call(ref.ask, 1, timeout=-1)
    with pytest.raises(ValueError, match=r"the timeout of ask\(\) must be a number of seconds"):
        policy.call(ref.ask, 1, -1)
    with pytest.raises(ValueError, match=r"the timeout of ask\(\) must be a number of seconds"):
        Retry(system=system).call(policy.call, ref.ask, 1, -1)
    system.run_until_idle()
    assert not asked
