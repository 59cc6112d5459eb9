"""`ask` and its future: answers, failures, timeouts, and that no ask is left unanswered."""

import asyncio
import threading
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorStopped, ActorSystem, AskTimeout, CallboardError, Future
from tests.waiting import in_threads


class Doubler(Actor[int]):
    def receive(self, message: int) -> int:
        return message * 2


class Silent(Actor[Any]):
    """Stashes every message, so that no ask of it is answered while it lives."""

    def receive(self, message: Any) -> None:
        self.stash()


class Blocked(Actor[Any]):
    """Is in the middle of its first message until the gate opens."""

    def __init__(self, entered: threading.Event, gate: threading.Event) -> None:
        self.entered, self.gate = entered, gate

    def receive(self, message: Any) -> Any:
        self.entered.set()
        assert self.gate.wait(30)
        return message


def test_the_value_of_receive_answers_the_ask(system: ActorSystem) -> None:
    assert system.spawn(Doubler).ask(21).result(timeout=30) == 42


def test_an_ask_whose_handler_returns_nothing_is_answered_with_none(system: ActorSystem) -> None:
    class Quiet(Actor[Any]):
        def receive(self, message: Any) -> None:
            pass

    assert system.spawn(Quiet).ask("hello").result(timeout=30) is None


def test_asks_of_many_threads_each_get_their_own_answers(system: ActorSystem) -> None:
    doubler = system.spawn(Doubler)
    answers: dict[int, list[int]] = {}

    def ask(thread: int) -> None:
        numbers = range(thread * 1_000, thread * 1_000 + 100)
        answers[thread] = [doubler.ask(number).result(timeout=30) for number in numbers]

    in_threads(ask, range(4))
    assert answers == {
        thread: [2 * number for number in range(thread * 1_000, thread * 1_000 + 100)]
        for thread in range(4)
    }


def test_an_ask_whose_handler_fails_gets_the_exception(system: ActorSystem) -> None:
    doubler = system.spawn(Doubler)
    future = doubler.ask(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="NoneType"):
        future.result(timeout=30)
    assert isinstance(future.exception(), TypeError)


def test_an_ask_in_work_when_the_actor_is_told_to_stop_is_answered(system: ActorSystem) -> None:
    entered, gate = threading.Event(), threading.Event()
    ref = system.spawn(Blocked, entered, gate)
    future = ref.ask("in work")
    assert entered.wait(30)
    ref.stop()
    gate.set()
    assert future.result(timeout=30) == "in work"


def test_an_ask_that_waits_when_the_actor_stops_fails_at_once(system: ActorSystem) -> None:
    entered, gate = threading.Event(), threading.Event()
    ref = system.spawn(Blocked, entered, gate)
    ref.tell("in work")
    assert entered.wait(30)
    waiting = ref.ask("behind it")
    ref.stop()
    gate.set()
    with pytest.raises(ActorStopped, match=f"{ref.path} was stopped"):
        waiting.result(timeout=30)


def test_a_stopped_actor_answers_no_ask(system: ActorSystem) -> None:
    ref = system.spawn(Doubler)
    ref.stop()
    system.drain()
    future = ref.ask(1)
    assert future.done()
    with pytest.raises(ActorStopped, match=f"{ref.path} was stopped"):
        future.result()


def test_an_actor_that_stops_itself_still_answers_the_ask_in_work(system: ActorSystem) -> None:
    class Once(Actor[Any]):
        def receive(self, message: Any) -> str:
            self.stop()
            return "the last answer"

    ref = system.spawn(Once)
    first, second = ref.ask(1), ref.ask(2)
    assert first.result(timeout=30) == "the last answer"
    with pytest.raises(ActorStopped):
        second.result(timeout=30)


def test_an_ask_with_a_timeout_fails_when_no_answer_came_in_time(system: ActorSystem) -> None:
    ref = system.spawn(Silent)
    future = ref.ask("anything", timeout=0.01)
    with pytest.raises(AskTimeout, match=rf"no answer from {ref.path} in 0.01 s"):
        future.result(timeout=30)
    assert isinstance(future.exception(), TimeoutError)


def test_an_answer_after_the_timeout_is_dropped(system: ActorSystem) -> None:
    entered, gate = threading.Event(), threading.Event()
    ref = system.spawn(Blocked, entered, gate)
    late = ref.ask("late", timeout=0)
    assert entered.wait(30)
    with pytest.raises(AskTimeout):
        late.result(timeout=30)
    gate.set()
    assert ref.ask("in time").result(timeout=30) == "in time"
    assert isinstance(late.exception(), AskTimeout)


def test_result_gives_up_after_its_own_timeout_and_can_be_called_again(system: ActorSystem) -> None:
    entered, gate = threading.Event(), threading.Event()
    ref = system.spawn(Blocked, entered, gate)
    future = ref.ask("slow")
    with pytest.raises(AskTimeout, match=r"no answer from .* after 0.01 s"):
        future.result(timeout=0.01)
    gate.set()
    assert future.result(timeout=30) == "slow"


def test_result_with_no_time_left_gives_up_at_once(system: ActorSystem) -> None:
    ref = system.spawn(Silent)
    with pytest.raises(AskTimeout):
        ref.ask("anything").result(timeout=0)


def test_a_timeout_of_result_is_a_number_of_seconds(system: ActorSystem) -> None:
    done = Future.of(1)  # an answer that is there makes no difference
    for future in (system.spawn(Silent).ask("anything"), done):
        for wait in (future.result, future.exception):
            with pytest.raises(ValueError, match=r"result\(\) must be a number of seconds from 0"):
                wait(timeout=-1)


@pytest.mark.parametrize("timeout", [1e6, 1e9, 10**9])
def test_a_timeout_may_be_thirty_years(system: ActorSystem, timeout: float) -> None:
    assert system.spawn(Doubler).ask(1, timeout=timeout).result(timeout=timeout) == 2


def test_a_callback_is_called_once_with_the_future(system: ActorSystem) -> None:
    entered, gate = threading.Event(), threading.Event()
    ref = system.spawn(Blocked, entered, gate)
    called: list[Future[Any]] = []
    future = ref.ask("x")
    future.add_done_callback(called.append)
    future.add_done_callback(called.append)
    gate.set()
    future.result(timeout=30)
    system.drain()
    future.add_done_callback(called.append)  # at once: the answer is there
    assert called == [future] * 3


def test_a_failing_callback_affects_neither_actor_nor_other_callbacks(system: ActorSystem) -> None:
    entered, gate = threading.Event(), threading.Event()
    ref = system.spawn(Blocked, entered, gate)
    called: list[Future[Any]] = []
    future = ref.ask("x")

    def broken(future: Future[Any]) -> None:
        raise LookupError("a broken callback")

    future.add_done_callback(broken)
    future.add_done_callback(called.append)
    gate.set()
    assert future.result(timeout=30) == "x"
    system.drain()
    assert called == [future]
    assert ref.is_alive
    assert system.dead_letters.count == 0


def test_a_worker_is_never_blocked_by_result(system: ActorSystem) -> None:
    silent = system.spawn(Silent)

    class Blocker(Actor[Any]):
        def receive(self, message: Any) -> Any:
            return silent.ask(message).result()

    with pytest.raises(CallboardError, match="would block a worker"):
        system.spawn(Blocker).ask("x").result(timeout=30)


def test_a_dedicated_actor_may_wait_for_a_result(system: ActorSystem) -> None:
    class Patient(Actor[int]):
        def __init__(self, target: ActorRef[int]) -> None:
            self.target = target

        def receive(self, message: int) -> Any:
            return self.target.ask(message).result(timeout=30)

    ref = system.spawn(Patient, system.spawn(Doubler), dedicated=True)
    assert ref.ask(3).result(timeout=30) == 6


async def test_an_answer_can_be_awaited_in_asyncio(system: ActorSystem) -> None:
    doubler = system.spawn(Doubler)

    async def ask(number: int) -> int:
        answer: int = await doubler.ask(number)
        return answer

    answers = await asyncio.gather(*(ask(number) for number in range(100)))
    assert answers == list(range(0, 200, 2))


async def test_a_failure_can_be_awaited_in_asyncio(system: ActorSystem) -> None:
    with pytest.raises(TypeError, match="NoneType"):
        await system.spawn(Doubler).ask(None)  # type: ignore[arg-type]


async def test_a_cancelled_asyncio_task_leaves_the_actor_alone(system: ActorSystem) -> None:
    entered, gate = threading.Event(), threading.Event()
    ref = system.spawn(Blocked, entered, gate)

    async def wait() -> Any:
        return await ref.ask("slow")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(wait(), timeout=0.01)
    gate.set()
    assert await ref.ask("next") == "next"


def test_asyncio_inside_a_dedicated_actor_awaits_asks(system: ActorSystem) -> None:
    class Bridge(Actor[int]):
        def __init__(self, target: ActorRef[int]) -> None:
            self.target = target

        def receive(self, message: int) -> Any:
            return asyncio.run(self.main(message))

        async def main(self, message: int) -> Any:
            return await self.target.ask(message)

    ref = system.spawn(Bridge, system.spawn(Doubler), dedicated=True)
    assert ref.ask(5).result(timeout=30) == 10


def test_a_future_says_what_it_waits_for(system: ActorSystem) -> None:
    ref = system.spawn(Silent, name="quiet")
    future = ref.ask("x")
    system.drain()
    assert repr(future) == "<Future waiting, asked <ActorRef /quiet>>"


def test_a_future_is_completed_once() -> None:
    future: Future[int] = Future()
    assert not future.done()
    assert future.set_result(1)
    assert not future.set_result(2)
    assert not future.set_exception(LookupError())
    assert future.result() == 1
    assert future.exception() is None
