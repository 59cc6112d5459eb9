"""A coroutine that a handler returns is awaited, wherever a future would be."""

from typing import Any

import pytest

from callboard import Actor, ActorSystem, Future

DEADLINE = 30.0
on_both_hosts = pytest.mark.parametrize("event_loop", [False, True])


class Asked(Actor[int]):
    """Has its answer made by coroutines within coroutines."""

    async def doubled(self, number: int) -> int:
        await self.sleep(0.0)
        return 2 * number


class Plain(Asked):
    def receive(self, number: int) -> Any:
        return self.doubled(number)


class Coroutine(Asked):
    async def receive(self, number: int) -> Any:
        return self.doubled(number)


class Becomes(Asked):
    def receive(self, number: int) -> Any:
        self.become(self.doubled)


@on_both_hosts
@pytest.mark.parametrize("cls", [Plain, Coroutine])
def test_an_actor_awaits_it(system: ActorSystem, cls: type[Asked], event_loop: bool) -> None:
    assert system.spawn(cls, event_loop=event_loop).ask(3).result(DEADLINE) == 6


@on_both_hosts
def test_an_actor_with_concurrency_awaits_it(system: ActorSystem, event_loop: bool) -> None:
    ref = system.spawn(Coroutine, event_loop=event_loop, concurrency=3)
    answers = [ref.ask(number) for number in range(10)]
    assert [answer.result(DEADLINE) for answer in answers] == list(range(0, 20, 2))


def test_an_actor_that_became_another_awaits_it(system: ActorSystem) -> None:
    ref = system.spawn(Becomes)
    ref.tell(0)
    assert ref.ask(4).result(DEADLINE) == 8


def test_a_failed_await_is_a_failure_of_the_message(system: ActorSystem) -> None:
    door: Future[int] = Future()

    class Fails(Actor[int]):
        async def wait(self) -> int:
            return await door

        async def receive(self, number: int) -> Any:
            return self.wait()

    answer = system.spawn(Fails).ask(1)
    door.set_exception(KeyError("door"))
    with pytest.raises(KeyError):
        answer.result(DEADLINE)


def test_nobody_awaits_that_of_receive_many(system: ActorSystem) -> None:
    class Many(Asked):
        def receive(self, number: int) -> None:
            pass

        def receive_many(self, numbers: list[int]) -> Any:
            return self.doubled(numbers[0])

    ref = system.spawn(Many)
    ref.tell(1)
    end = ref.ended.result(DEADLINE)
    assert "receive_many() returned a coroutine" in str(end.cause)


class Rows(Actor[int]):
    async def receive(self, number: int) -> Any:
        return (row for row in range(number))


@pytest.mark.parametrize(
    "options",
    [{}, {"dedicated": True}, {"event_loop": True}, {"event_loop": True, "concurrency": 2}],
)
def test_a_generator_is_the_answer_itself(system: ActorSystem, options: Any) -> None:
    assert list(system.spawn(Rows, **options).ask(3).result(DEADLINE)) == [0, 1, 2]
