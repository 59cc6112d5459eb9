"""Actors for which `concurrency` is refused."""

import asyncio

import pytest

from callboard import Actor, ActorSystem, SpawnError
from callboard.channels import Task
from tests.actors.gates import Gates

DEADLINE = 30.0


def test_a_number_below_one_is_refused(system: ActorSystem) -> None:
    with pytest.raises(SpawnError, match="concurrency"):
        system.spawn(Gates, [], [], concurrency=0)


def test_only_an_async_receive_may_have_it(system: ActorSystem) -> None:
    class Plain(Actor[int]):
        def receive(self, message: int) -> None:
            pass

    class Many(Gates):
        def receive_many(self, messages: list[int]) -> None:
            pass

    class Runs(Task):
        async def run(self) -> None:
            pass

    with pytest.raises(SpawnError, match=r"Plain\.receive is not `async def`.*concurrency=2"):
        system.spawn(Plain, concurrency=2)
    with pytest.raises(SpawnError, match="Many has `receive_many`"):
        system.spawn(Many, [], [], concurrency=2)
    with pytest.raises(SpawnError, match="Runs is a task"):
        system.spawn(Runs, concurrency=2)
    system.spawn(Plain, concurrency=1).tell(1)


def test_it_awaits_only_what_an_actor_can(system: ActorSystem) -> None:
    class Awaits(Actor[int]):
        async def receive(self, message: int) -> None:
            await asyncio.sleep(0)

    with pytest.raises((TypeError, RuntimeError), match="event_loop=True"):
        system.spawn(Awaits, concurrency=2).ask(1).result(DEADLINE)
