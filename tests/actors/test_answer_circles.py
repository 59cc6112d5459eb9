"""Answers that wait for each other in a circle: they fail, and the error names the circle."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from callboard import Actor, ActorRef, ActorStopped, ActorSystem, AskDeadlock, Future, Supervision
from tests.actors.promising import Link, Promising


class Member(Actor[Any]):
    """Answers with the answer of the next of a circle; handles what is no question itself."""

    following: ActorRef[Any] | None = None

    def receive(self, message: Any) -> Any:
        if isinstance(message, ActorRef):
            self.following = message
            return None
        if callable(message):
            return message(self)
        assert self.following is not None
        return self.following.ask(message)


class AsyncMember(Member):
    async def receive(self, message: Any) -> Any:
        answer = super().receive(message)
        return await answer if isinstance(answer, Future) else answer


def ring(system: ActorSystem, classes: list[type[Member]], **options: Any) -> list[ActorRef[Any]]:
    members = [
        system.spawn(cls, name=f"member-{number}", **options) for number, cls in enumerate(classes)
    ]
    for number, member in enumerate(members):
        member.ask(members[(number + 1) % len(members)]).result(timeout=30)
    return members


@pytest.mark.parametrize("length", [1, 2, 3, 10])
def test_a_circle_of_answers_is_named_to_who_asks(system: ActorSystem, length: int) -> None:
    members = ring(system, [Member] * length)
    with pytest.raises(
        AskDeadlock, match="each answers with what the next will answer: "
    ) as caught:
        members[0].ask("round and round").result(timeout=60)
    path = str(caught.value).split(": ")[1].split(", ")[0].split(" -> ")
    assert len(path) == length + 1
    assert path[0] == path[-1]
    assert set(path) == {member.path for member in members}


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("directive", ["stop", "restart", "resume"])
def test_any_directive_ends_a_circle(system: ActorSystem, length: int, directive: str) -> None:
    members = ring(system, [Member] * length, supervision=Supervision(directive))  # type: ignore[arg-type]
    assert isinstance(members[0].ask("round and round").exception(timeout=60), AskDeadlock)
    for _ in range(2):
        # A member that was stopped asks no more; one that was restarted does not know its follower.
        error = members[0].ask("round and round").exception(timeout=60)
        assert isinstance(error, AskDeadlock | ActorStopped | AssertionError)
    system.drain(timeout=60)


@pytest.mark.parametrize("length", [2, 3, 5])
def test_a_circle_of_answers_and_awaits_is_named(system: ActorSystem, length: int) -> None:
    for waiting in range(length):
        classes: list[type[Member]] = [Member] * length
        classes[waiting] = AsyncMember
        with ActorSystem(workers=len(system._runtime.team.workers)) as inner:
            members = ring(inner, classes)
            with pytest.raises(AskDeadlock, match="each waits for the next: ") as caught:
                members[0].ask("round and round").result(timeout=60)
            path = str(caught.value).removeprefix("each waits for the next: ").split(" -> ")
            assert path[0] == path[-1]
            assert {member.path for member in members} == set(path)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_asks_answered_with_each_other_are_a_circle(system: ActorSystem, length: int) -> None:
    """No new ask is made: each of the asks that are there is given as the answer to another."""
    answers: list[Future[Any]] = []
    gate = threading.Event()
    members = [system.spawn(Member) for _ in range(length)]

    def give_next(number: int) -> Callable[[Any], Any]:
        def give(member: Any) -> Any:
            assert gate.wait(30)
            return answers[(number + 1) % length]

        return give

    answers += [member.ask(give_next(number)) for number, member in enumerate(members)]
    gate.set()
    for answer in answers:
        with pytest.raises(AskDeadlock, match="each waits for the next: "):
            answer.result(timeout=30)


def test_an_actor_may_ask_itself_900_levels_deep(system: ActorSystem) -> None:
    class Countdown(Actor[int]):
        def receive(self, message: int) -> Any:
            return self.ref.ask(message - 1) if message else "lift-off"

    assert system.spawn(Countdown).ask(900).result(timeout=30) == "lift-off"


def test_two_actors_may_answer_with_each_others_answers_for_a_while(system: ActorSystem) -> None:
    class Parity(Actor[Any]):
        other: ActorRef[Any] | None = None

        def __init__(self, if_zero: bool) -> None:
            self.if_zero = if_zero

        def receive(self, message: Any) -> Any:
            if isinstance(message, ActorRef):
                self.other = message
                return None
            assert self.other is not None
            return self.other.ask(message - 1) if message else self.if_zero

    even, odd = system.spawn(Parity, True), system.spawn(Parity, False)
    even.tell(odd)
    odd.tell(even)
    assert even.ask(1_801).result(timeout=30) is False


def test_many_asks_that_pass_through_the_same_actors_are_no_circle(system: ActorSystem) -> None:
    last = system.spawn(Promising, [])
    middle = system.spawn(Link, last)
    first = system.spawn(Link, middle)
    answers = [first.ask("how are you") for _ in range(5_000)]
    assert [answer.result(timeout=60) for answer in answers] == ["well"] * 5_000


def test_an_actor_that_passes_an_ask_on_may_await_its_asker(system: ActorSystem) -> None:
    """The answer comes from a third actor, so nobody waits for ever."""

    class Customer(Actor[Any]):
        async def receive(self, message: Any) -> Any:
            if message == "who is it":
                return "a customer"
            return await clerk.ask("a question")

    class Clerk(Actor[Any]):
        customer: ActorRef[Any] | None = None

        def receive(self, message: Any) -> Any:
            if message == "check":
                return self.check()
            self.customer = self.sender
            checked.append(self.ref.ask("check"))
            return expert.ask(message)

        async def check(self) -> Any:
            assert self.customer is not None
            waiting.set()
            return await self.customer.ask("who is it")

    promises: list[Future[Any]] = []
    checked: list[Future[Any]] = []
    waiting = threading.Event()
    expert = system.spawn(Promising, promises)
    clerk = system.spawn(Clerk)
    answer = system.spawn(Customer).ask("go")
    assert waiting.wait(30)
    assert expert.ask("how are you").result(timeout=30) == "well"
    promises[0].set_result("an answer")
    assert answer.result(timeout=30) == "an answer"
    assert checked[0].result(timeout=30) == "a customer"


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_circle_of_blocked_actors_is_named(system: ActorSystem, length: int) -> None:
    class Sleeping(Member):
        def receive(self, message: Any) -> Any:
            answer = super().receive(message)
            return answer.result(timeout=60) if isinstance(answer, Future) else answer

    members = ring(system, [Sleeping] * length, dedicated=True)
    with pytest.raises(AskDeadlock, match="each waits for the next: ") as caught:
        members[0].ask("round and round").result(timeout=30)
    assert str(caught.value).count(" -> ") == length


def give_in_step(
    answers: list[Future[Any]], number: int, barrier: threading.Barrier, gate: threading.Event
) -> Callable[[Any], Any]:
    def give(member: Any) -> Any:
        assert gate.wait(30)
        barrier.wait(30)
        return answers[number]

    return give


@pytest.fixture
def two_workers() -> Iterator[ActorSystem]:
    with ActorSystem(workers=2) as system:
        yield system


def test_a_circle_that_two_actors_close_at_the_same_time_is_seen(two_workers: ActorSystem) -> None:
    for _ in range(50):
        answers: list[Future[Any]] = []
        barrier = threading.Barrier(2)
        gate = threading.Event()

        refs = [two_workers.spawn(Member, dedicated=True) for _ in range(2)]
        answers += [
            ref.ask(give_in_step(answers, 1 - number, barrier, gate))
            for number, ref in enumerate(refs)
        ]
        gate.set()
        for answer in answers:
            assert isinstance(answer.exception(timeout=30), AskDeadlock)
        for ref in refs:
            ref.stop()
